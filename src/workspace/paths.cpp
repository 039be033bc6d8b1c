#include "holt/workspace/workspace.hpp"

namespace holt {

std::string normalize_path(std::string_view path) {
  bool absolute = path.starts_with('/');
  std::vector<std::string_view> kept;
  for (std::size_t at = 0; at <= path.size();) {
    std::size_t end = std::min(path.find('/', at), path.size());
    std::string_view component = path.substr(at, end - at);
    at = end + 1;
    if (component.empty() || component == ".") continue;
    bool climbs = component == ".." && !kept.empty() && kept.back() != "..";
    if (climbs) {
      kept.pop_back();
    } else if (component != ".." || !absolute) {
      kept.push_back(component);
    }
  }
  std::string out = absolute ? "/" : "";
  for (std::string_view component : kept) {
    if (!out.empty() && out.back() != '/') out += '/';
    out += component;
  }
  return out.empty() ? "." : out;
}

std::string join_path(std::string_view base, std::string_view relative) {
  if (relative.starts_with('/')) return std::string(relative);
  std::string out(base);
  if (!out.ends_with('/')) out += '/';
  return out += relative;
}

bool is_below(std::string_view path, std::string_view directory) {
  if (directory == "/") return path.starts_with('/');
  return path.starts_with(directory) && (path.size() == directory.size() || path[directory.size()] == '/');
}

}  // namespace holt
