// Shell-style patterns over whole paths: * and ? cross '/', [...] is a set, there is no escape.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace holt {

bool glob_matches(const std::string& pattern, const std::string& path);

/// True when the glob names a component that starts with a dot, as `.github/**` or `{.github,src}`; not for
/// `.`, `..` or behind a leading `!`.
bool names_hidden(std::string_view glob);

/// True when a component of the relative path starts with a dot.
bool is_hidden(std::string_view path);

/// Patterns of files that no file tool changes, e.g. "**/.git". Case does not matter; a leading `**/` matches
/// no directory too; a pattern that fits a directory protects all below it.
class WriteProtection {
 public:
  /// The patterns of Coder: repositories, environments, keys, secrets, the harness's own folder.
  static std::vector<std::string> default_patterns();
  explicit WriteProtection(std::vector<std::string> patterns) : patterns_(std::move(patterns)) {}
  /// The first pattern that protects the root-relative path; null when none does.
  const std::string* protects(std::string_view path) const;

 private:
  std::vector<std::string> patterns_;
};

}  // namespace holt
