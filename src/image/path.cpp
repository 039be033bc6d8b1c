#include "image/path.hpp"

#include "holt/base/error.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace holt::image {
namespace {

constexpr std::string_view k_meta_prefix = ".wh..wh.";
constexpr std::string_view k_opaque = ".wh..wh..opq";

}  // namespace

std::expected<Path, Refusal> parse_path(std::string_view text, const Limits& limits) {
  if (text.size() > limits.path_bytes) {
    return refused(fmt::format("has a path of {} bytes", text.size()));
  }
  if (text.find('\0') != std::string_view::npos) return refused("has a NUL in its path");
  Path path;
  while (!text.empty()) {
    std::size_t slash = std::min(text.find('/'), text.size());
    std::string_view part = text.substr(0, slash);
    text.remove_prefix(std::min(slash + 1, text.size()));
    if (part.empty() || part == ".") continue;
    if (part == "..") {
      if (!path.empty()) path.pop_back();
      continue;
    }
    if (part.size() > k_name_bytes) return refused(fmt::format("has a name of {} bytes", part.size()));
    path.push_back(part);
  }
  if (path.size() > limits.path_depth) {
    return refused(fmt::format("lies {} folders deep", path.size()), ErrorCode::limit_exceeded);
  }
  return path;
}

std::expected<Marker, Refusal> marker_of(const Path& path) {
  auto first = std::ranges::find_if(path, [](auto part) { return part.starts_with(k_marker_prefix); });
  if (first == path.end()) return Marker::none;
  bool last = first + 1 == path.end();
  if (last && *first == k_opaque) return Marker::opaque;
  if (first->starts_with(k_meta_prefix)) return Marker::ignored;
  if (!last) return refused(fmt::format("lies below the whiteout '{}'", printable(*first, 64)));
  std::string_view name = first->substr(k_marker_prefix.size());
  if (name.empty() || name == "." || name == "..") return refused("is a whiteout of no name");
  return Marker::whiteout;
}

}  // namespace holt::image
