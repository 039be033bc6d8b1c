#include "harness/file_system/globs.hpp"

#include <fnmatch.h>

namespace holt {
namespace {

bool protects_path(const std::string& pattern, const std::string& path) {
  constexpr int flags = FNM_NOESCAPE | FNM_CASEFOLD;
  if (::fnmatch(pattern.c_str(), path.c_str(), flags) == 0) return true;
  return pattern.starts_with("**/") && ::fnmatch(pattern.c_str() + 3, path.c_str(), flags) == 0;
}

bool is_component_start(std::string_view glob, std::size_t at) {
  return at == 0 || glob[at - 1] == '/' || glob[at - 1] == '{' || glob[at - 1] == ',';
}

}  // namespace

bool glob_matches(const std::string& pattern, const std::string& path) {
  return ::fnmatch(pattern.c_str(), path.c_str(), FNM_NOESCAPE) == 0;
}

bool names_hidden(std::string_view glob) {
  if (glob.starts_with('!')) return false;
  for (std::size_t at = 0; at < glob.size(); ++at) {
    if (glob[at] != '.' || !is_component_start(glob, at)) continue;
    std::size_t end = std::min(glob.find_first_of("/,}", at), glob.size());
    std::string_view component = glob.substr(at, end - at);
    if (component != "." && component != "..") return true;
  }
  return false;
}

bool is_hidden(std::string_view path) {
  return path.starts_with('.') || path.find("/.") != std::string_view::npos;
}

std::vector<std::string> WriteProtection::default_patterns() {
  return {"**/.git", "**/.env", "**/.env.*", "*.pem", "*.key", "**/secrets*", "**/.pydantic-ai-harness/**"};
}

const std::string* WriteProtection::protects(std::string_view path) const {
  for (const auto& pattern : patterns_) {
    for (std::size_t end = path.find('/');; end = path.find('/', end + 1)) {
      if (protects_path(pattern, std::string(path.substr(0, end)))) return &pattern;
      if (end == std::string_view::npos) break;
    }
  }
  return nullptr;
}

}  // namespace holt
