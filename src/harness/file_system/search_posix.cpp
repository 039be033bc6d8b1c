#include "harness/file_system/search.hpp"
#include "harness/text.hpp"
#include "harness/wording.hpp"
#include "holt/base/encoding.hpp"

#include <algorithm>
#include <chrono>

namespace holt::file_tools {
namespace {

constexpr std::chrono::seconds k_timeout{120};
// Names of one grep command: under the 128 KiB of a single argument list entry and far under ARG_MAX.
constexpr std::size_t k_batch_bytes = 100'000;
constexpr int k_exit_not_regular = 105;

/// Regular files below the directory $1, links left out, as NUL-ended names in base64, sorted. git knows what
/// is ignored, also outside a repository, with a temporary one.
constexpr const char* k_list_script = R"(
cd -- "$1" || exit 104
set -- -z --cached --others --exclude-standard
[ -f .ignore ] && set -- "$@" --exclude-from=.ignore
names() {
  if ! command -v git >/dev/null 2>&1; then find . -type f -print0
  elif git rev-parse --is-inside-work-tree >/dev/null 2>&1; then git ls-files "$@"
  else
    t=$(mktemp -d) || return 1
    git init -q --bare "$t/repository" &&
      git --git-dir="$t/repository" --work-tree=. ls-files "$@"
    rm -rf "$t"
  fi
}
names "$@" | xargs -0 sh -c 'for f do
  if [ -f "$f" ] && [ ! -L "$f" ]; then printf "%s\0" "$f"; fi; done' sh |
  LC_ALL=C sort -z -u | head -c 8388608 | base64
)";

/// $1 directory, $2 the only file or empty, then options, pattern and names.
constexpr const char* k_grep_script = R"(
cd -- "$1" || exit 104
[ -z "$2" ] || [ -f "$2" ] || exit 105
shift 2
exec 4>&1
code=$( { { LC_ALL=C grep -n -H -I "$@" 4>&-; echo $? >&3; } | head -c 8388608 >&4; } 3>&1 )
exit "$code"
)";

Task<CommandResult> run(Workspace workspace, std::vector<std::string> argv) {
  CommandOptions options;
  options.timeout = k_timeout;
  co_return co_await workspace.run(WorkspaceCommand(std::move(argv)), std::move(options));
}

bool is_wanted(const SearchScope& scope, const std::string& name) {
  if (name.find('\n') != std::string::npos) return false;
  if (scope.file) return name == *scope.file;
  if (is_hidden(name) && !(scope.glob && names_hidden(*scope.glob))) return false;
  return !scope.glob || glob_matches(*scope.glob, name);
}

Task<std::vector<std::string>> names_below(Workspace workspace, SearchScope scope) {
  std::vector<std::string> argv{"/bin/sh", "-c", k_list_script, "sh", scope.directory};
  CommandResult result = co_await run(workspace, std::move(argv));
  std::string encoded = result.out;
  std::erase_if(encoded, [](char c) { return c == '\n' || c == '\r'; });
  auto bytes = base64_decode(encoded);
  if (result.exit_code != 0 || !bytes) {
    throw ModelRetry(wording::posix_search_failed(trim_end(result.err)));
  }
  std::vector<std::string> names;
  for (std::string_view piece : split(*bytes, '\0')) {
    std::string name(without_dot(piece));
    if (!name.empty() && is_wanted(scope, name)) names.push_back(std::move(name));
  }
  std::ranges::sort(names);
  co_return names;
}

/// What ripgrep understands and POSIX does not.
bool needs_ripgrep(const std::string& pattern) {
  static constexpr std::string_view classes = "dDwWsSpP";
  for (std::size_t i = 0; i + 1 < pattern.size(); ++i) {
    if (pattern[i] == '\\') {
      if (classes.find(pattern[i + 1]) != std::string_view::npos) return true;
      ++i;
      continue;
    }
    if (pattern[i] == '(' && pattern[i + 1] == '?') return true;
    bool repeats = pattern[i] == '*' || pattern[i] == '+' || pattern[i] == '?' || pattern[i] == '}';
    if (repeats && pattern[i + 1] == '?') return true;
  }
  return false;
}

/// `./name:12:text` or `./name-12-text`. The names are known and come in order, so a name may hold anything.
bool take_line(std::string_view line, const std::string& name, const SearchScope& scope,
               SearchAnswer& answer) {
  std::string start = "./" + name;
  if (!line.starts_with(start)) return false;
  std::string_view rest = line.substr(start.size());
  if (rest.empty() || (rest[0] != ':' && rest[0] != '-')) return false;
  std::size_t digits = rest.find_first_not_of("0123456789", 1);
  if (digits == std::string_view::npos || digits == 1 || rest[digits] != rest[0]) return false;
  answer.lines.push_back(scope.prefix + utf8_replace(name) + std::string(rest));
  return true;
}

void take_output(std::string_view text, const std::vector<std::string>& names, const SearchScope& scope,
                 SearchAnswer& answer) {
  std::size_t current = 0;
  for (std::string_view line : split(text, '\n')) {
    for (std::size_t i = current; i < names.size(); ++i) {
      if (!take_line(line, utf8_replace(names[i]), scope, answer)) continue;
      current = i;
      break;
    }
    if (answer.lines.size() > k_max_found) return;
  }
}

void take_errors(std::string_view errors, UnreadablePaths& unreadable) {
  errors = trim_end(errors);
  for (std::string_view line : split(errors, '\n')) {
    std::size_t reason = line.rfind(": ");
    if (!line.starts_with("grep: ./") || reason < 8) {
      throw ModelRetry(wording::posix_search_failed(errors));
    }
    unreadable.add(std::string(line.substr(reason + 2)), std::string(line.substr(8, reason - 8)));
  }
}

std::vector<std::string> grep_options(const ContentQuery& query) {
  std::vector<std::string> options{query.literal ? "-F" : "-E"};
  if (query.ignore_case) options.push_back("-i");
  if (query.context > 0) options.insert(options.end(), {"-C", std::to_string(query.context)});
  options.insert(options.end(), {"-e", query.pattern, "--"});
  return options;
}

}  // namespace

Task<SearchAnswer> posix_files(Workspace workspace, SearchScope scope) {
  SearchAnswer answer;
  for (const auto& name : co_await names_below(workspace, scope)) {
    answer.lines.push_back(scope.prefix + utf8_replace(name));
  }
  co_return answer;
}

Task<SearchAnswer> posix_matches(Workspace workspace, SearchScope scope, ContentQuery query) {
  if (query.file_type) throw ModelRetry(wording::k_grep_type_needs_rg);
  if (!query.literal && needs_ripgrep(query.pattern)) throw ModelRetry(wording::k_grep_needs_rg);
  std::vector<std::string> names{scope.file.value_or("")};
  if (!scope.file) names = co_await names_below(workspace, scope);
  SearchAnswer answer;
  UnreadablePaths unreadable;
  for (std::size_t at = 0; at < names.size() && answer.lines.size() <= k_max_found;) {
    std::vector<std::string> argv{
        "/bin/sh", "-c", k_grep_script, "sh", scope.directory, scope.file.value_or("")};
    for (auto& option : grep_options(query)) argv.push_back(std::move(option));
    std::vector<std::string> batch;
    for (std::size_t bytes = 0; at < names.size() && bytes < k_batch_bytes; ++at) {
      bytes += names[at].size() + 3;
      batch.push_back(names[at]);
      argv.push_back("./" + names[at]);
    }
    CommandResult result = co_await run(workspace, std::move(argv));
    if (result.exit_code == k_exit_not_regular) throw PathError(PathErrorKind::not_regular, scope.directory);
    take_output(result.out, batch, scope, answer);
    if (result.exit_code > 1 && !result.err.empty()) take_errors(result.err, unreadable);
  }
  answer.notes = unreadable.notes(scope);
  co_return answer;
}

}  // namespace holt::file_tools
