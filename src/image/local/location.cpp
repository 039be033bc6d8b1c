#include "image/local/location.hpp"

#include "holt/image/pull.hpp"

#include <algorithm>
#include <array>

namespace holt::image {
namespace fs = std::filesystem;
namespace {

struct Prefix {
  std::string_view text;
  LocalKind kind;
};
constexpr std::array<Prefix, 3> k_prefixes{
    {{"oci:", LocalKind::layout}, {"docker-archive:", LocalKind::saved}, {"rootfs:", LocalKind::root}}};

constexpr std::array<std::string_view, 9> k_extensions{".tar", ".tar.gz", ".tgz",      ".tar.zst", ".tzst",
                                                       ".oci", ".gz",     ".tar.zstd", ".zst"};

bool is_plain(char c) {
  return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

}  // namespace

bool is_local_image(std::string_view text) {
  for (std::string_view beginning : {"/", "./", "../"}) {
    if (text.starts_with(beginning)) return true;
  }
  return std::ranges::any_of(k_prefixes, [&](const Prefix& prefix) { return text.starts_with(prefix.text); });
}

Location parse_location(std::string_view text) {
  const auto* prefix =
      std::ranges::find_if(k_prefixes, [&](const Prefix& p) { return text.starts_with(p.text); });
  if (prefix == k_prefixes.end()) return {.path = text};
  text.remove_prefix(prefix->text.size());
  Location location{.kind = prefix->kind, .path = text};
  std::size_t colon = text.find(':');
  std::error_code error;
  if (prefix->kind == LocalKind::root || colon == std::string_view::npos ||
      fs::exists(location.path, error)) {
    return location;
  }
  location.path = text.substr(0, colon);
  location.select = text.substr(colon + 1);
  return location;
}

std::string name_after(const fs::path& path) {
  std::string file = path.lexically_normal().filename().string();
  if (file.empty()) file = path.lexically_normal().parent_path().filename().string();
  std::size_t cut = 0;
  for (std::string_view extension : k_extensions) {
    if (file.ends_with(extension)) cut = std::max(cut, extension.size());
  }
  file.resize(file.size() - cut);
  std::string name;
  for (char c : file) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    if (is_plain(c)) {
      name += c;
    } else if (!name.empty() && is_plain(name.back())) {
      name += c == '.' ? '.' : '-';
    }
  }
  if (!name.empty() && !is_plain(name.back())) name.pop_back();
  // "rootfs:latest" would be read as a place.
  if (is_local_image(name + ":")) name += "-image";
  return name;
}

}  // namespace holt::image
