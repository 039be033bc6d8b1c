#include "harness/file_system/search.hpp"
#include "harness/text.hpp"
#include "harness/wording.hpp"

#include <algorithm>
#include <chrono>

namespace holt::file_tools {
namespace {

constexpr std::size_t k_output_limit = std::size_t{8} << 20;  // cut inside the workspace
constexpr std::size_t k_record_limit = std::size_t{1} << 20;
constexpr std::chrono::seconds k_timeout{120};
constexpr int k_exit_no_ripgrep = 103;
constexpr int k_exit_not_regular = 105;

/// $1 is the directory, $2 the file in it or empty, the rest ripgrep's arguments. Its exit code is kept
/// although its output is cut. A FIFO as the file would block for ever.
constexpr const char* k_script = R"(
command -v rg >/dev/null 2>&1 || exit 103
cd -- "$1" || exit 104
[ -z "$2" ] || [ -f "$2" ] || exit 105
shift 2
exec 4>&1
code=$( { { rg "$@" 4>&-; echo $? >&3; } | head -c 8388608 >&4; } 3>&1 )
exit "$code"
)";

struct Output {
  std::string text;
  std::vector<std::string> notes;
};

/// The path and the reason of a line such as `rg: ./dir: Permission denied (os error 13)`.
bool note_unreadable(std::string_view line, UnreadablePaths& unreadable) {
  if (!line.starts_with("rg: ./")) return false;
  line.remove_prefix(6);
  std::size_t path_end = line.find(": ");
  std::size_t os_error = line.rfind(" (os error ");
  if (path_end == std::string_view::npos || os_error == std::string_view::npos) return false;
  std::size_t reason = line.rfind(": ", os_error) + 2;
  if (reason > os_error) return false;
  unreadable.add(std::string(line.substr(reason, os_error - reason)), std::string(line.substr(0, path_end)));
  return true;
}

std::vector<std::string> remarks_or_retry(const SearchScope& scope, std::string_view errors) {
  UnreadablePaths unreadable;
  errors = trim_end(errors);
  for (std::string_view line : split(errors, '\n')) {
    if (!note_unreadable(line, unreadable)) {
      throw ModelRetry(wording::ripgrep_failed(errors));
    }
  }
  return unreadable.notes(scope);
}

std::vector<std::string> common_arguments(const SearchScope& scope) {
  std::vector<std::string> arguments{"--no-config", "--null", "--color", "never", "--sort", "path"};
  if (scope.glob) {
    if (names_hidden(*scope.glob)) arguments.push_back("--hidden");
    arguments.insert(arguments.end(), {"--glob", *scope.glob});
  }
  return arguments;
}

Task<std::optional<Output>> run_ripgrep(Workspace workspace, const SearchScope& scope,
                                        std::vector<std::string> arguments) {
  std::vector<std::string> argv{"/bin/sh", "-c", k_script, "sh", scope.directory, scope.file.value_or("")};
  argv.insert(argv.end(), arguments.begin(), arguments.end());
  argv.push_back("--");
  argv.push_back("./" + scope.file.value_or(""));
  CommandOptions options;
  options.timeout = k_timeout;
  CommandResult result = co_await workspace.run(WorkspaceCommand(std::move(argv)), std::move(options));
  if (result.exit_code == k_exit_no_ripgrep) co_return std::nullopt;
  if (result.exit_code == k_exit_not_regular) throw PathError(PathErrorKind::not_regular, scope.directory);
  Output output;
  // Ripgrep whose output was cut ends by a broken pipe, which is no failure.
  bool cut = result.out.size() >= k_output_limit;
  if (result.exit_code > 1 && !cut) output.notes = remarks_or_retry(scope, result.err);
  output.text = std::move(result.out);
  co_return output;
}

/// One record of ripgrep's output: a path that NUL ends and the rest of its line, or a line without a path.
struct Record {
  std::string_view path;
  std::string_view rest;
  bool complete = true;
};

Record take_record(std::string_view& text) {
  std::size_t line_end = text.find('\n');
  std::size_t nul = text.find('\0');
  if (line_end < nul) {
    std::string_view line = text.substr(0, line_end);
    bool no_path = line == "--" || line.find(": binary file matches (") != std::string_view::npos;
    if (no_path) {
      text.remove_prefix(line_end + 1);
      return {{}, line};
    }
  }
  if (nul == std::string_view::npos) {
    Record rest{{}, text, false};
    text = {};
    return rest;
  }
  Record record{text.substr(0, nul), {}};
  text.remove_prefix(nul + 1);
  line_end = text.find('\n');
  record.complete = line_end != std::string_view::npos;
  record.rest = text.substr(0, line_end);
  text.remove_prefix(record.complete ? line_end + 1 : text.size());
  return record;
}

/// `12:text` or `12-text` behind its path.
std::string answer_line(const SearchScope& scope, const Record& record) {
  if (record.path.empty()) return scope.prefix + std::string(without_dot(record.rest));
  std::size_t separator = record.rest.find_first_not_of("0123456789");
  char mark = separator == std::string_view::npos ? ':' : record.rest[separator];
  return scope.prefix + std::string(without_dot(record.path)) + mark + std::string(record.rest);
}

}  // namespace

Task<std::optional<SearchAnswer>> ripgrep_files(Workspace workspace, SearchScope scope) {
  std::vector<std::string> arguments = common_arguments(scope);
  arguments.push_back("--files");
  auto output = co_await run_ripgrep(workspace, scope, std::move(arguments));
  if (!output) co_return std::nullopt;
  SearchAnswer answer{.lines = {}, .notes = std::move(output->notes)};
  std::string_view text = output->text;
  for (std::size_t end = text.find('\0'); end != std::string_view::npos; end = text.find('\0')) {
    answer.lines.push_back(scope.prefix + std::string(without_dot(text.substr(0, end))));
    text.remove_prefix(end + 1);
  }
  co_return answer;
}

Task<std::optional<SearchAnswer>> ripgrep_matches(Workspace workspace, SearchScope scope,
                                                  ContentQuery query) {
  std::vector<std::string> arguments = common_arguments(scope);
  arguments.insert(arguments.end(), {"--line-number", "--with-filename", "--no-heading", "--max-columns",
                                     "4096", "--max-columns-preview"});
  if (query.ignore_case) arguments.push_back("--ignore-case");
  if (query.literal) arguments.push_back("--fixed-strings");
  if (query.file_type) arguments.insert(arguments.end(), {"--type", *query.file_type});
  if (query.context > 0) arguments.insert(arguments.end(), {"--context", std::to_string(query.context)});
  arguments.insert(arguments.end(), {"--regexp", query.pattern});
  auto output = co_await run_ripgrep(workspace, scope, std::move(arguments));
  if (!output) co_return std::nullopt;
  SearchAnswer answer{.lines = {}, .notes = std::move(output->notes)};
  std::string_view text = output->text;
  while (!text.empty() && answer.lines.size() <= k_max_found) {
    Record record = take_record(text);
    bool separator = record.path.empty() && record.rest == "--";
    if (separator || !record.complete || record.rest.size() > k_record_limit) continue;
    answer.lines.push_back(answer_line(scope, record));
  }
  co_return answer;
}

}  // namespace holt::file_tools
