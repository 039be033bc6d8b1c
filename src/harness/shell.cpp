#include "holt/harness/shell.hpp"

#include "harness/shell/job.hpp"
#include "harness/wording.hpp"
#include "holt/agent/run_context.hpp"
#include "holt/base/encoding.hpp"

#include <algorithm>
#include <chrono>
#include <exception>

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/describe.hpp>

namespace holt {
namespace shell {

struct Arguments {
  std::string command;
  std::string mode = "foreground";
  std::optional<double> timeout;
};
BOOST_DESCRIBE_STRUCT(Arguments, (), (command, mode, timeout))

static void describe(Schema<Arguments>& schema) {
  schema.field(&Arguments::command).text("Command line to run.");
  schema.field(&Arguments::mode)
      .text("foreground waits, background does not.")
      .default_value("foreground")
      .one_of({"foreground", "background"});
  schema.field(&Arguments::timeout)
      .text("Seconds a foreground call waits; the configured value when absent.");
}

}  // namespace shell

namespace {

namespace asio = boost::asio;
using namespace shell;
using namespace std::chrono_literals;

constexpr int k_max_timeout = 270;
constexpr Duration k_first_poll = 50ms;
constexpr Duration k_last_poll = 1s;
constexpr std::size_t k_event_bytes = 4096;           // of one event
constexpr std::size_t k_event_bytes_of_call = 16000;  // of all events of a call

Duration checked_timeout(const Arguments& arguments) {
  double seconds = arguments.timeout.value_or(k_max_timeout);
  if (!(seconds > 0 && seconds <= k_max_timeout)) {
    throw ModelRetry(wording::shell_timeout_range(k_max_timeout));
  }
  return std::chrono::duration_cast<Duration>(std::chrono::duration<double>(seconds));
}

/// One foreground call: watches the job and tells listeners what it prints.
class Watch {
 public:
  Watch(RunContext& context, Job job, Deadline deadline)
      : context_(context), workspace_(context.workspace()), job_(std::move(job)), deadline_(deadline) {}

  Task<std::string> to_the_end() {
    Duration pause = k_first_poll;
    JobView view;
    for (;;) {
      co_await sleep_for(std::min(pause, deadline_.left()));
      LookOptions options;
      options.offset = told_;
      options.fresh_bytes = std::min(k_event_bytes, k_event_bytes_of_call - told_);
      options.tail = deadline_.passed() ? Tail::always : Tail::when_ended;
      view = co_await look_at_job(workspace_, job_, options);
      tell(view);
      if (view.exit_code || deadline_.passed()) {
        if (view.exit_code || options.tail == Tail::always) break;
        continue;
      }
      bool grew = view.log_bytes != seen_bytes_;
      seen_bytes_ = view.log_bytes;
      pause = grew ? k_first_poll : std::min(pause * 2, k_last_poll);
    }
    tell_end(view);
    co_return log_text(view) + handles_text(job_, view);
  }

 private:
  void tell(const JobView& view) {
    if (view.fresh.empty()) return;
    told_ += view.fresh.size();
    Json data = {{"text", utf8_replace(view.fresh)}};
    context_.emit(CustomEvent{.name = "shell.command_output", .data = std::move(data)});
  }
  void tell_end(const JobView& view) {
    Json data = {{"pid", job_.pid},
                 {"output", job_.folder + "/output.log"},
                 {"status", job_.folder + "/status.json"},
                 {"exit_code", view.exit_code ? Json(*view.exit_code) : Json(nullptr)},
                 {"truncated", view.log_bytes > k_tail_bytes}};
    context_.emit(CustomEvent{.name = "shell.command_finished", .data = std::move(data)});
  }

  RunContext& context_;
  Workspace workspace_;
  Job job_;
  Deadline deadline_;
  std::size_t told_ = 0;
  std::uint64_t seen_bytes_ = 0;
};

Task<std::string> run_in_foreground(RunContext& context, std::string name, Arguments arguments,
                                    Duration timeout) {
  Deadline deadline = Deadline::after(timeout);
  Job job = co_await start_job(context.workspace(), std::move(name), arguments.command);
  Json data = {{"command", arguments.command}, {"pid", job.pid}};
  context.emit(CustomEvent{.name = "shell.command_started", .data = std::move(data)});
  Watch watch(context, std::move(job), deadline);
  co_return co_await watch.to_the_end();
}

/// discard_job() as a coroutine of its own that no cancellation reaches; it ends by itself, at the timeout of
/// its command at the latest. A cancellation meanwhile stays with the caller.
Task<void> discard_uncancelled(Workspace workspace, std::string name) {
  auto executor = co_await asio::this_coro::executor;
  auto discarded =
      asio::co_spawn(executor, discard_job(std::move(workspace), std::move(name)),
                     asio::bind_cancellation_slot(asio::cancellation_slot(), asio::use_awaitable));
  co_await std::move(discarded);
}

/// A call that fails or is cancelled leaves no job behind.
Task<std::string> run_job(RunContext& context, Arguments arguments, Duration timeout) {
  std::string name = job_name(context.run_id(), context.tool_call_id());
  Workspace workspace = context.workspace();
  std::exception_ptr failure;
  bool started = true;
  try {
    co_return co_await run_in_foreground(context, name, std::move(arguments), timeout);
  } catch (const ModelRetry&) {
    failure = std::current_exception();
    started = false;
  } catch (const ToolFailed&) {
    failure = std::current_exception();
    started = false;
  } catch (...) {
    failure = std::current_exception();
  }
  if (started) {
    co_await asio::this_coro::reset_cancellation_state();
    co_await discard_uncancelled(workspace, name);
  }
  std::rethrow_exception(failure);
}

Task<std::string> run_shell(RunContext& context, Arguments arguments) {
  if (arguments.command.find('\0') != std::string::npos) throw ModelRetry(wording::k_shell_nul);
  Duration timeout = checked_timeout(arguments);
  if (arguments.mode == "background") throw ModelRetry(wording::k_shell_no_background);
  try {
    co_return co_await run_job(context, std::move(arguments), timeout);
  } catch (const WorkspaceUnavailableError&) {
    throw;
  } catch (const WorkspaceReadOnlyError&) {
    throw ToolFailed(wording::k_read_only);
  } catch (const WorkspaceError& error) {
    throw ToolFailed(error.what());
  }
}

}  // namespace

Shell::Shell() {
  ToolOptions options;
  options.metadata = {{"code_arg_name", "command"}, {"code_arg_language", "shell"}};
  tools_ = {
      tool("shell",
           "Run a shell command whose process outlives this call and the run. Foreground waits for its end, "
           "but timeout seconds at most (270 or less); background does not wait. Both answer with handles: "
           "the PID, the log file (stdout and stderr together) and a JSON status file, where exit_code stays "
           "null as long as the command runs. Look at those files with the other tools and stop the command "
           "with kill; nothing announces its end.",
           run_shell, std::move(options))};
}

std::vector<Tool> Shell::tools(const RunContext& context) const {
  const Workspace& workspace = context.workspace();
  if (workspace.read_only() || !workspace.has_commands()) return {};
  return tools_;
}

}  // namespace holt
