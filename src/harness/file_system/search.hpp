// Three ways to search a workspace, best first: ripgrep in it, POSIX utilities in it, or a walk through its
// files from here (where it runs no commands for us).
#pragma once

#include "harness/file_system/toolbox.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace holt::file_tools {

/// Where and how to search. The path of a file is split: its directory and its name.
struct SearchScope {
  std::string directory;            ///< absolute; the programs run in it
  std::optional<std::string> file;  ///< the only file in it to search
  std::string prefix;               ///< of answers, in front of paths below `directory`
  std::optional<std::string> glob;
};

/// What was found: lines of an answer, and remarks behind them.
struct SearchAnswer {
  std::vector<std::string> lines = {};
  std::vector<std::string> notes = {};
};

struct ContentQuery {
  std::string pattern;
  std::optional<std::string> file_type = std::nullopt;
  bool ignore_case = false;
  bool literal = false;
  int context = 0;
};

constexpr std::size_t k_max_found = 1000;

/// Paths of files; nothing when the workspace has no ripgrep. Throws ModelRetry for what ripgrep refuses.
Task<std::optional<SearchAnswer>> ripgrep_files(Workspace workspace, SearchScope scope);
/// Matching lines, likewise.
Task<std::optional<SearchAnswer>> ripgrep_matches(Workspace workspace, SearchScope scope, ContentQuery query);

Task<SearchAnswer> posix_files(Workspace workspace, SearchScope scope);
Task<SearchAnswer> posix_matches(Workspace workspace, SearchScope scope, ContentQuery query);

Task<SearchAnswer> walked_files(Workspace workspace, SearchScope scope);
Task<SearchAnswer> walked_matches(Workspace workspace, SearchScope scope, ContentQuery query);

/// True when tools may run commands in the workspace.
inline bool runs_commands(const Workspace& workspace) {
  return workspace.has_commands() && !workspace.read_only();
}

/// The answer as text: `nothing` where there are no lines, at most k_max_found lines of `what`.
std::string answer_text(const SearchAnswer& answer, std::string_view nothing, std::string_view what);

/// Remarks on paths that could not be read, one for each reason. Paths are below the scope's directory.
class UnreadablePaths {
 public:
  void add(std::string reason, std::string path);
  bool empty() const { return reasons_.empty(); }
  std::vector<std::string> notes(const SearchScope& scope) const;

 private:
  struct Reason {
    std::string text;
    std::vector<std::string> paths;
  };
  std::vector<Reason> reasons_;
};

/// A path that a program printed, without the "./" that it was told to start from.
inline std::string_view without_dot(std::string_view path) {
  return path.starts_with("./") ? path.substr(2) : path;
}

}  // namespace holt::file_tools
