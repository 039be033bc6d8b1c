#include "harness/file_system/search.hpp"
#include "harness/text.hpp"
#include "harness/wording.hpp"
#include "holt/base/encoding.hpp"

#include <algorithm>

#include <boost/regex.hpp>

namespace holt::file_tools {
namespace {

constexpr std::size_t k_max_directories = 10'000;
constexpr std::size_t k_max_entries = 100'000;
constexpr std::size_t k_max_file = std::size_t{10} << 20;
constexpr std::size_t k_sniffed = 8192;
constexpr std::size_t k_max_line = 4096;  // bytes of a matching line that are shown
constexpr std::size_t k_named = 5;

struct Walk {
  std::vector<FileEntry> files;  // path below the scope's directory in `name`
  std::size_t hidden = 0;
  bool cut = false;
};

/// All regular names below a directory, in order. Links are left out: what they name is elsewhere.
class Walker {
 public:
  Walker(Workspace workspace, const SearchScope& scope)
      : workspace_(std::move(workspace)),
        scope_(scope),
        wants_hidden_(scope.glob && names_hidden(*scope.glob)) {}

  Task<Walk> walk() {
    real_directory_ = co_await workspace_.realpath(scope_.directory);
    std::vector<std::string> open{""};
    for (std::size_t directories = 0; !open.empty() && !walk_.cut; ++directories) {
      std::string directory = std::move(open.back());
      open.pop_back();
      if (directories == k_max_directories) {
        walk_.cut = true;
        break;
      }
      co_await visit(directory, open);
    }
    std::ranges::sort(walk_.files, {}, &FileEntry::name);
    co_return std::move(walk_);
  }

 private:
  Task<void> visit(std::string directory, std::vector<std::string>& open) {
    std::vector<FileEntry> entries;
    try {
      entries = co_await workspace_.list_dir(real_path(directory));
    } catch (const PathError&) {
      co_return;  // gone or closed: the rest is searched
    }
    for (auto& entry : entries) {
      if (++entries_ > k_max_entries) {
        walk_.cut = true;
        co_return;
      }
      std::string path = directory + "/" + entry.name;
      bool wanted = entry.is_dir || !scope_.glob || glob_matches(*scope_.glob, path.substr(1));
      if (!wanted) continue;
      if (entry.name.starts_with('.') && !wants_hidden_) {
        ++walk_.hidden;
        continue;
      }
      if (co_await is_link(path)) continue;
      if (entry.is_dir) {
        open.push_back(path);
      } else {
        entry.name = path.substr(1);
        walk_.files.push_back(std::move(entry));
      }
    }
  }

  /// `path` is empty or starts with a slash.
  std::string real_path(const std::string& path) const {
    bool below_root = real_directory_ == "/" && !path.empty();
    return below_root ? path : real_directory_ + path;
  }

  Task<bool> is_link(std::string path) {
    std::string real;
    try {
      real = co_await workspace_.realpath(real_path(path));
    } catch (const PathError&) {
      co_return true;
    }
    co_return real != real_path(path);
  }

  Workspace workspace_;
  const SearchScope& scope_;
  bool wants_hidden_;
  std::string real_directory_;
  std::size_t entries_ = 0;
  Walk walk_;
};

void add_notes(const Walk& walk, SearchAnswer& answer) {
  if (walk.cut) answer.notes.push_back(wording::search_walk_cut(k_max_directories, k_max_entries));
  if (walk.hidden > 0) answer.notes.push_back(wording::search_hidden(walk.hidden));
}

/// A repetition of a group that holds one: a backtracking engine may need for ever.
bool repeats_a_repetition(const std::string& pattern) {
  std::vector<bool> groups;  // whether the open group holds a repetition
  bool closed_with_repetition = false;
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    char c = pattern[i];
    bool repeats = c == '*' || c == '+' || c == '{';
    if (repeats && closed_with_repetition) return true;
    closed_with_repetition = false;
    if (c == '\\') {
      ++i;
    } else if (c == '[') {
      std::size_t end = pattern.find(']', i + 2);
      if (end == std::string::npos) return false;
      i = end;
    } else if (c == '(') {
      groups.push_back(false);
    } else if (c == ')' && !groups.empty()) {
      closed_with_repetition = groups.back();
      groups.pop_back();
      if (closed_with_repetition && !groups.empty()) groups.back() = true;
    } else if (repeats && !groups.empty()) {
      groups.back() = true;
    }
  }
  return false;
}

/// Looks at one line. Boost's engine gives up, by an exception, where it would take too long.
class LineMatcher {
 public:
  explicit LineMatcher(const ContentQuery& query) {
    auto flags = boost::regex::perl | boost::regex::no_mod_s;
    if (query.literal) flags = boost::regex::literal;
    if (query.ignore_case) flags |= boost::regex::icase;
    try {
      regex_.assign(query.pattern, flags);
    } catch (const boost::regex_error& error) {
      throw ModelRetry(wording::grep_bad_regex(error.what()));
    }
  }
  bool matches(std::string_view line) const {
    try {
      return boost::regex_search(line.begin(), line.end(), regex_);
    } catch (const std::runtime_error& error) {
      throw ModelRetry(wording::grep_bad_regex(error.what()));
    }
  }

 private:
  boost::regex regex_;
};

void search_text(const std::string& path, std::string_view text, const LineMatcher& matcher,
                 const CancellationToken& cancel, SearchAnswer& answer) {
  if (text.substr(0, k_sniffed).find('\0') != std::string_view::npos) return;
  std::size_t number = 0;
  if (text.ends_with('\n')) text.remove_suffix(1);
  for (std::string_view line : split(text, '\n')) {
    ++number;
    cancel.throw_if_cancelled();
    if (!matcher.matches(line)) continue;
    std::string shown = utf8_replace(line.substr(0, k_max_line));
    if (line.size() > k_max_line) shown += " [... omitted end of long line]";
    answer.lines.push_back(fmt::format("{}:{}:{}", path, number, shown));
    if (answer.lines.size() > k_max_found) return;
  }
}

}  // namespace

Task<SearchAnswer> walked_files(Workspace workspace, SearchScope scope) {
  Walker walker(workspace, scope);
  Walk walk = co_await walker.walk();
  SearchAnswer answer;
  for (const auto& file : walk.files) answer.lines.push_back(scope.prefix + utf8_replace(file.name));
  add_notes(walk, answer);
  co_return answer;
}

Task<SearchAnswer> walked_matches(Workspace workspace, SearchScope scope, ContentQuery query) {
  if (query.context > 0) throw ModelRetry(wording::k_grep_no_context);
  if (query.file_type) throw ModelRetry(wording::k_grep_type_needs_rg);
  if (!query.literal && repeats_a_repetition(query.pattern)) throw ModelRetry(wording::k_grep_nested_repeat);
  LineMatcher matcher(query);
  Walk walk;
  if (scope.file) {
    walk.files.push_back({.name = *scope.file, .path = join_path(scope.directory, *scope.file)});
  } else {
    Walker walker(workspace, scope);
    walk = co_await walker.walk();
  }
  SearchAnswer answer;
  std::vector<std::string> skipped;
  for (const auto& file : walk.files) {
    std::string shown = scope.prefix + utf8_replace(file.name);
    if (answer.lines.size() > k_max_found) break;
    if (file.size.value_or(0) > k_max_file) {
      skipped.push_back(shown);
      continue;
    }
    std::string bytes;
    try {
      bytes = co_await workspace.read_bytes(file.path);
    } catch (const PathError&) {
      skipped.push_back(shown);
      continue;
    }
    co_await blocking(
        [&](const CancellationToken& cancel) { search_text(shown, bytes, matcher, cancel, answer); });
  }
  add_notes(walk, answer);
  if (!skipped.empty()) {
    std::string names;
    for (std::size_t i = 0; i < std::min(skipped.size(), k_named); ++i) {
      names += (i == 0 ? "" : ", ") + skipped[i];
    }
    if (skipped.size() > k_named) names += ", ...";
    answer.notes.push_back(wording::search_skipped(skipped.size(), names));
  }
  co_return answer;
}

}  // namespace holt::file_tools
