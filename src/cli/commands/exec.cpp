#include "cli/commands/commands.hpp"
#include "cli/errors.hpp"
#include "cli/guest_run.hpp"
#include "cli/machine_flags.hpp"
#include "cli/machines.hpp"

#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>

namespace holt::cli {
namespace {

using Words = std::vector<std::string>;

class ExecCommand : public Command {
 public:
  CommandInfo info() const override {
    return {.name = "exec",
            .group = Group::machines,
            .summary = "Run a command in a machine, which is started when it is not running",
            .usage = "[flags] NAME COMMAND [ARGUMENT...]",
            .example = "tar c . | holt exec dev tar x -C /work",
            .tail = Tail::guest_argv,
            .failure_code = k_exit_engine};
  }

  void declare(Options& options) override {
    options.flag("-i,--interactive", interactive_, "Forward standard input, also from a terminal");
    options.flag("-T,--no-tty", no_tty_, "No terminal in the guest (there is none in this version)");
    options.texts("-e,--env", "NAME[=VALUE]", env_, "Environment variable; a bare NAME is copied from here");
    options.text("-w,--workdir", "DIR", working_dir_, "Working folder (default: the machine's)");
    options.text("-u,--user", "USER", user_, "User, name or UID[:GID] (default: the machine's)");
    options.duration("--timeout", timeout_, "End the command after so long (exit code 124)");
    options.bytes("--max-output", max_output_, "Bytes of each output that --json keeps (default 8M)");
    options.flag("--start", start_, "Start a machine that is not running (the default)");
    options.flag("--no-start", no_start_, "Fail when the machine is not running");
    options.flag("--signal-proxy", signal_proxy_, "Hand signals to the command (the default)");
    options.text("--exit-code-file", "FILE", exit_code_file_,
                 "Write the exit code and its origin there as JSON");
    options.later_flag("-t,--tty", "a terminal in the guest");
    options.later_flag("-d,--detach", "a detached command");
    options.later_value("--attach", "a detached command");
    options.later_value("--wait", "a detached command");
    options.later_value("--kill", "a detached command");
  }

  void take_tail(const Words& given) override {
    auto tail = given;
    if (!tail.empty() && tail.front() == "--") tail.erase(tail.begin());
    if (tail.empty()) return;
    name_ = tail.front();
    tail.erase(tail.begin());
    if (!tail.empty() && tail.front() == "--") tail.erase(tail.begin());
    argv_ = std::move(tail);
  }

  Outcome run(Session& session) override {
    if (name_.empty()) throw usage_error("no machine and no command", "Write holt exec NAME COMMAND.");
    if (argv_.empty()) {
      throw usage_error(fmt::format("no command for machine '{}'", printable(name_, 130)),
                        "Write holt exec NAME COMMAND.");
    }
    if (start_ && no_start_) throw usage_error("--start and --no-start exclude each other");
    return with_exit_code_file(session, exit_code_file_, [&] { return run_once(session); });
  }

 private:
  GuestPlan plan(Session& session) const {
    GuestPlan plan{.argv = argv_};
    plan.options.env = parse_env(env_);
    plan.options.working_dir = working_dir_.value_or("");
    plan.options.user = user_.value_or("");
    plan.options.timeout = timeout_;
    if (max_output_) plan.options.output_limit = *max_output_;
    plan.input = stdin_choice(interactive_ ? Interactive::yes : Interactive::no);
    plan.output = session.globals.json ? GuestOutput::captured : GuestOutput::streamed;
    return plan;
  }

  GuestExit run_once(Session& session) const {
    auto plan = this->plan(session);
    auto machine = find_machine(session, name_);
    if (machine.state() != MachineState::running) start(session, machine);
    auto exit = run_in_guest(session, machine, std::move(plan));
    if (session.globals.json) print(session, exit, machine.info());
    return exit;
  }

  void start(Session& session, Machine& machine) const {
    if (no_start_) {
      throw Error(
          ErrorCode::invalid_state, fmt::format("Machine '{}' is not running", machine.name()),
          {.subject = machine.name(), .hint = "Leave --no-start out, or start it first.", .retryable = true});
    }
    machine.start(session.start_options());
    session.output.clear_progress();
    auto info = machine.info();
    if (info.accelerator) session.warn_of(*info.accelerator);
  }

  static void print(Session& session, const GuestExit& exit, const MachineInfo& info) {
    Json json{{"machine", info.name}};
    json.update(guest_exit_json(exit));
    json["accelerator"] = info.accelerator ? Json(to_string(*info.accelerator)) : Json(nullptr);
    json["isolation"] = info.accelerator ? Json(isolation_of(*info.accelerator)) : Json(nullptr);
    session.output.json(json);
  }

  bool interactive_ = false;
  bool no_tty_ = false;
  std::vector<std::string> env_;
  std::optional<std::string> working_dir_;
  std::optional<std::string> user_;
  std::optional<Duration> timeout_;
  std::optional<std::size_t> max_output_;
  bool start_ = false;
  bool no_start_ = false;
  bool signal_proxy_ = false;
  std::optional<std::string> exit_code_file_;
  std::string name_;
  Words argv_;
};

}  // namespace

std::unique_ptr<Command> make_exec() {
  return std::make_unique<ExecCommand>();
}

}  // namespace holt::cli
