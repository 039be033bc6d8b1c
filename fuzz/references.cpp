// Names of images, which come from command lines, histories and models and become keys and paths of the
// store.
#include "fuzz.hpp"
#include "holt/image/reference.hpp"

using namespace holt;

namespace {

constexpr std::size_t k_longest_name = 255;
constexpr std::string_view k_path_bytes = "abcdefghijklmnopqrstuvwxyz0123456789._-/";
constexpr std::string_view k_host_bytes =
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-:[]";

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::Input input(data, size);
  auto reference = image::parse_reference(input.all());
  if (!reference) return 0;
  auto text = reference->canonical();
  fuzz::require(reference->name.find("..") == std::string::npos && !text.starts_with('/'));
  fuzz::require(reference->tag.find('/') == std::string::npos);
  auto again = image::parse_reference(text);
  fuzz::require(again && again->canonical() == text);
  fuzz::require(reference->digest.empty() || image::is_digest(reference->digest));

  // What a registry is asked for: a host that cannot be anything else, a path that stays below it.
  auto host = reference->registry();
  auto path = reference->repository();
  fuzz::require(again->registry() == host && again->repository() == path);
  fuzz::require(!host.empty() && host.find_first_not_of(k_host_bytes) == std::string::npos);
  fuzz::require(host.front() != '-' && host.front() != '.' && host.find("..") == std::string::npos);
  fuzz::require(!path.empty() && path.find_first_not_of(k_path_bytes) == std::string::npos);
  fuzz::require(path.find("..") == std::string::npos && path.find("//") == std::string::npos);
  fuzz::require(path.front() != '/' && path.back() != '/');
  auto name = host + "/" + path;
  if (name.size() > k_longest_name) return 0;
  auto whole = image::parse_reference(name + text.substr(reference->name.size()));
  fuzz::require(whole && whole->canonical() == text);
  return 0;
}
