// Names of images, which come from command lines, histories and models and become keys and paths of the
// store.
#include "fuzz.hpp"
#include "holt/image/reference.hpp"

using namespace holt;

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
  return 0;
}
