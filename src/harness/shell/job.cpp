#include "harness/shell/job.hpp"

#include "harness/text.hpp"
#include "harness/wording.hpp"
#include "holt/agent/tool.hpp"
#include "holt/base/encoding.hpp"
#include "holt/base/json.hpp"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>

#include <fmt/format.h>

namespace holt::shell {
namespace {

constexpr std::chrono::seconds k_control_timeout{30};
constexpr const char* k_folder = ".pydantic-ai-harness/shell";

constexpr int k_exit_link = 71;
constexpr int k_exit_no_folder = 72;
constexpr int k_exit_pending = 73;
constexpr int k_exit_no_program = 75;

/// Stays beside the command and publishes how it ended. Handles SIGTERM, so that a signal to the whole job
/// does not take the exit code with it. The log is emptied when it grows past its limit; the command appends,
/// so it goes on at the new end. $1 folder, $2 command, $3 "group" when this is the leader of a group.
constexpr const char* k_supervisor = R"(
folder=$1 command=$2 group=-
[ "$3" = group ] && group=$$
publish() {
  printf '{"pid": %s, "exit_code": %s}' "$$" "$1" > "$folder/status.tmp" &&
    mv -f "$folder/status.tmp" "$folder/status.json"
}
bound_log() {
  size=$(wc -c < "$folder/output.log") || return
  [ "$size" -le 100000000 ] ||
    echo '[log passed max_log_bytes=100000000; what came before is gone]' > "$folder/output.log"
}
trap : TERM
: > "$folder/output.log"
publish null || exit 1
printf '%s %s' "$$" "$group" > "$folder/handle"
: > "$folder/launch.ready"
echo ready >&3
exec 3>&-
(while sleep 1; do bound_log; done) &
watcher=$!
(exec sh -c "$command" < /dev/null >> "$folder/output.log" 2>&1)
code=$?
kill "$watcher"
bound_log
publish "$code"
)";

/// $1 name, $2 command, $3 supervisor. The pipe of the substitution is held by the supervisor until it is
/// ready, so nothing has to be waited for by turns. Prints the handle.
constexpr const char* k_start = R"(
home=.pydantic-ai-harness shell=.pydantic-ai-harness/shell
if [ -L "$home" ] || [ -L "$shell" ]; then exit 71; fi
for program in mv base64; do
  command -v "$program" > /dev/null 2>&1 || { echo "$program" >&2; exit 75; }
done
(umask 077; mkdir -p "$shell") || exit 72
[ -e "$home/.gitignore" ] || echo '*' > "$home/.gitignore"
folder=$shell/$1
if (umask 077; mkdir "$folder") 2> /dev/null; then
  detach=setsid mark=group
  command -v setsid > /dev/null 2>&1 || { detach=nohup mark=none; }
  ready=$( { "$detach" sh -c "$3" sh "$folder" "$2" "$mark" 3>&1 > /dev/null 2>&1 < /dev/null & } )
  [ "$ready" = ready ] || exit 76
elif [ ! -e "$folder/launch.ready" ]; then exit 73
fi
cat "$folder/handle"
)";

/// $1 folder, $2 offset, $3 bytes, $4 "always" for the tail of a running job. Lines: status, size of the log,
/// fresh bytes and tail in base64. The tail has one byte more than is shown: it tells whether a line was cut.
constexpr const char* k_look = R"sh(
status=$(cat "$1/status.json" 2> /dev/null)
printf '%s\n' "$status"
size=$( { wc -c < "$1/output.log"; } 2> /dev/null) || size=0
echo $size
if [ "$3" -gt 0 ]; then
  tail -c "+$(($2 + 1))" "$1/output.log" 2> /dev/null | head -c "$3" | base64 | tr -d '\n'
fi
echo
case $4:$status in when_ended:*null*|when_ended:) exit 0 ;; esac
tail -c 16001 "$1/output.log" 2> /dev/null | base64 | tr -d '\n'
echo
)sh";

/// $1 folder.
constexpr const char* k_discard = R"sh(
read -r pid group < "$1/handle" 2> /dev/null
if [ -n "$pid" ]; then
  [ "$group" = "$pid" ] && pid=-$pid
  kill -s TERM -- "$pid" 2> /dev/null
  tries=0
  while kill -s 0 -- "$pid" 2> /dev/null && [ "$tries" -lt 20 ]; do
    sleep 0.1
    tries=$((tries + 1))
  done
  kill -s KILL -- "$pid" 2> /dev/null
fi
rm -rf "$1"
)sh";

Task<CommandResult> control(Workspace workspace, std::vector<std::string> arguments) {
  std::vector<std::string> argv{"/bin/sh", "-c"};
  argv.insert(argv.end(), std::make_move_iterator(arguments.begin()),
              std::make_move_iterator(arguments.end()));
  CommandOptions options;
  options.timeout = k_control_timeout;
  co_return co_await workspace.run(WorkspaceCommand(std::move(argv)), std::move(options));
}

/// The system's own words at the end of a program's complaint.
std::string reason_of(std::string_view errors) {
  errors = trim_end(errors);
  std::size_t line = errors.rfind('\n');
  if (line != std::string_view::npos) errors.remove_prefix(line + 1);
  std::size_t colon = errors.rfind(": ");
  return std::string(colon == std::string_view::npos ? errors : errors.substr(colon + 2));
}

void throw_if_not_started(const CommandResult& result) {
  switch (result.exit_code) {
    case 0:
      return;
    case k_exit_link:
      throw ToolFailed(wording::shell_folder_is_link(k_folder));
    case k_exit_no_folder:
      throw ToolFailed(wording::shell_folder_failed(k_folder, reason_of(result.err)));
    case k_exit_pending:
      throw ModelRetry(wording::k_shell_pending);
    case k_exit_no_program:
      throw ToolFailed(wording::shell_folder_failed(
          k_folder, fmt::format("the workspace has no {}", trim_end(result.err))));
    default:
      throw ModelRetry(wording::shell_launcher_failed(result.exit_code, trim_end(result.err)));
  }
}

std::string decoded(std::string_view line) {
  return base64_decode(line).value_or("");
}

std::optional<int> exit_code_of(std::string_view status) {
  auto value = parse_json(status);
  if (!value || !value->is_object()) return std::nullopt;
  auto code = value->find("exit_code");
  return code == value->end() ? std::nullopt : json_integer<int>(*code);
}

}  // namespace

std::string job_name(const std::string& run_id, const std::string& tool_call_id) {
  return sha256_hex(run_id + ":" + tool_call_id).substr(0, 32);
}

Task<Job> start_job(Workspace workspace, std::string name, std::string command) {
  Job job;
  job.name = name;
  job.folder = join_path(co_await workspace.working_dir(), std::string(k_folder) + "/" + name);
  CommandResult started;
  try {
    std::vector<std::string> arguments{k_start, "sh", name, std::move(command), k_supervisor};
    started = co_await control(workspace, std::move(arguments));
  } catch (const PathError& error) {
    if (error.error_number() != E2BIG) throw;
    throw ModelRetry(wording::k_shell_too_long);
  }
  throw_if_not_started(started);
  std::size_t space = started.out.find(' ');
  job.pid = started.out.substr(0, space);
  bool is_number =
      !job.pid.empty() && std::ranges::all_of(job.pid, [](char c) { return c >= '0' && c <= '9'; });
  if (!is_number) throw ModelRetry(wording::shell_launcher_failed(0, printable(started.out)));
  job.has_group = space != std::string::npos && started.out.substr(space + 1) == job.pid;
  co_return job;
}

Task<JobView> look_at_job(Workspace workspace, Job job, LookOptions options) {
  std::vector<std::string> arguments{k_look,
                                     "sh",
                                     job.folder,
                                     std::to_string(options.offset),
                                     std::to_string(options.fresh_bytes),
                                     options.tail == Tail::always ? "always" : "when_ended"};
  CommandResult result = co_await control(workspace, std::move(arguments));
  std::vector<std::string_view> lines = split(result.out, '\n');
  lines.resize(std::max<std::size_t>(lines.size(), 4));
  JobView view;
  view.status = lines[0];
  view.exit_code = exit_code_of(lines[0]);
  std::from_chars(lines[1].data(), lines[1].data() + lines[1].size(), view.log_bytes);
  view.fresh = decoded(lines[2]);
  view.tail = decoded(lines[3]);
  co_return view;
}

Task<void> discard_job(Workspace workspace, std::string name) {
  try {
    std::string folder = join_path(co_await workspace.working_dir(), std::string(k_folder) + "/" + name);
    std::vector<std::string> arguments{k_discard, "sh", std::move(folder)};
    co_await control(workspace, std::move(arguments));
  } catch (const Error&) {
    // The workspace went first, and the job with it.
  }
}

std::string log_text(const JobView& view) {
  std::string_view shown = view.tail;
  bool cut_line = false;
  if (shown.size() > k_tail_bytes) {
    cut_line = shown.front() != '\n';
    shown.remove_prefix(1);
  }
  std::size_t line_end = shown.find('\n');
  bool has_more_lines = line_end != std::string_view::npos && line_end + 1 < shown.size();
  if (cut_line && has_more_lines) shown.remove_prefix(line_end + 1);
  std::string text;
  if (view.log_bytes > shown.size()) text = wording::shell_log_cut(view.log_bytes - shown.size()) + "\n";
  text += utf8_replace(shown);
  if (!text.empty() && !text.ends_with('\n')) text += '\n';
  return text;
}

std::string handles_text(const Job& job, const JobView& view) {
  std::string kill = job.has_group ? "kill -- -" + job.pid : "kill " + job.pid;
  std::string text = fmt::format("{}\nOutput: {}/output.log\nStatus: {}/status.json",
                                 wording::shell_handles(job.pid, kill), job.folder, job.folder);
  if (!view.status.empty()) text += "\n" + utf8_replace(view.status);
  return text;
}

}  // namespace holt::shell
