#include "cli/background.hpp"
#include "cli/commands/commands.hpp"
#include "cli/errors.hpp"
#include "cli/guest_run.hpp"
#include "cli/limit_flags.hpp"
#include "cli/machine_flags.hpp"
#include "cli/machines.hpp"

#include <csignal>
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
            .examples = {"holt exec dev ls -l /", "holt exec -it dev bash",
                         "tar c . | holt exec dev tar x -C /work"},
            .tail = Tail::guest_argv,
            .tail_argument = "NAME",
            .failure_code = k_exit_engine};
  }

  void declare(Options& options) override {
    streams_.declare(options);
    options.texts("-e,--env", "NAME[=VALUE]", env_, "Environment variable; a bare NAME is copied from here");
    options.text("-w,--workdir", "DIR", working_dir_, "Working folder (default: the machine's)");
    options.text("-u,--user", "USER", user_, "User, name or UID[:GID] (default: the machine's)");
    options.duration("--timeout", timeout_, "End the command after so long (exit code 124)");
    options.bytes("--max-output", max_output_, "Bytes of each output that --json keeps (default 8M)");
    options.flag("--start", start_, "Start a machine that is not running (the default)");
    options.flag("--no-start", no_start_, "Fail when the machine is not running");
    limits_.declare(options);
    options.text("--exit-code-file", "FILE", exit_code_file_,
                 "Write the exit code and its origin there as JSON");
    options.flag("-d,--detach", detach_, "Leave the command to itself and print its ID, which is NAME:...");
    options.text("--attach", "ID", attach_, "Show what a detached command writes, from its first byte on");
    options.text("--wait", "ID", wait_, "Wait for a detached command; exit with its code");
    options.text("--kill", "SIGNAL", kill_,
                 "Send a signal to the detached command whose ID follows; KILL ends all it started");
    options.flag("--list", list_, "Show the detached commands of the machine");
    options.flag("--signal-proxy", signal_proxy_,
                 "Hand signals to the command (the default, but not with --attach)");
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
    check();
    if (attach_ || wait_ || !kill_.value_or("").empty()) return with_detached(session);
    if (list_) return list(session);
    if (detach_) return start_detached(session);
    return with_exit_code_file(session, exit_code_file_, [&] { return run_once(session); });
  }

 private:
  void check() const {
    int others = (attach_ ? 1 : 0) + (wait_ ? 1 : 0) + (kill_ ? 1 : 0) + (list_ ? 1 : 0);
    if (others + (detach_ ? 1 : 0) > 1)
      throw usage_error("--detach, --attach, --wait, --kill and --list exclude each other");
    if (start_ && no_start_) throw usage_error("--start and --no-start exclude each other");
    if (attach_ || wait_) {
      if (name_.empty()) return;
      throw usage_error(fmt::format("'{}' is one word too many", printable(name_, 130)),
                        "The ID of a detached command has its machine in it.");
    }
    if (name_.empty()) throw usage_error("no machine and no command", "Write holt exec NAME COMMAND.");
    if (argv_.empty() == (others > 0)) return;
    if (others > 0) throw usage_error("--kill and --list take no command");
    throw usage_error(fmt::format("no command for machine '{}'", printable(name_, 130)),
                      "Write holt exec NAME COMMAND.");
  }

  Outcome with_detached(Session& session) const {
    std::string flag = attach_ ? "--attach" : wait_ ? "--wait" : "--kill";
    auto ref = parse_command_ref(flag, attach_ ? *attach_ : wait_ ? *wait_ : name_);
    auto signal = kill_ ? std::optional<int>(parse_signal("--kill", *kill_)) : std::nullopt;
    auto machine = find_machine(session, ref.machine);
    if (signal) return signal_detached(session, machine, ref.id, *signal);
    return with_exit_code_file(session, exit_code_file_, [&] {
      return attach_ ? follow(session, machine, ref.id) : wait_for(session, machine, ref.id);
    });
  }

  GuestExit follow(Session& session, const Machine& machine, const std::string& id) const {
    auto exit = follow_command(session, machine, id, output_kind(session),
                               signal_proxy_ ? SignalProxy::on : SignalProxy::off);
    if (session.globals.json) print(session, exit, machine.info());
    return exit;
  }

  static GuestExit wait_for(Session& session, const Machine& machine, const std::string& id) {
    auto command = machine.wait_command(id, session.call());
    if (session.globals.json) session.output.json(command_json(machine, command));
    return exit_of(command);
  }

  static Outcome signal_detached(Session& session, const Machine& machine, const std::string& id,
                                 int signal) {
    if (signal == SIGKILL) {
      machine.kill_command(id, session.call());
    } else {
      machine.signal_command(id, signal, session.call());
    }
    if (session.globals.json) {
      session.output.json(
          {{"machine", machine.name()}, {"id", machine.name() + ":" + id}, {"signal", signal}});
    }
    return ToolExit{};
  }

  Outcome list(Session& session) const {
    print_commands(session, find_machine(session, name_));
    return ToolExit{};
  }

  Outcome start_detached(Session& session) const {
    if (exit_code_file_)
      throw usage_error("--exit-code-file needs a command that is waited for", "Use it with --wait.");
    auto plan = this->plan();
    streams_.apply_detached(plan);
    auto machine = running_machine(session);
    auto command = start_in_background(session, machine, std::move(plan));
    if (!command.running) return follow(session, machine, command.id);
    if (session.globals.json) {
      session.output.json(command_json(machine, command));
    } else {
      session.output.line(command_ref(machine, command));
    }
    return ToolExit{};
  }

  GuestPlan plan() const {
    GuestPlan plan{.argv = argv_};
    plan.options.env = parse_env(env_);
    plan.options.working_dir = working_dir_.value_or("");
    plan.options.user = user_.value_or("");
    plan.options.timeout = timeout_;
    if (max_output_) plan.options.output_limit = *max_output_;
    plan.options.limits = limits_.limits();
    return plan;
  }

  static OutputKind output_kind(const Session& session) {
    return session.globals.json ? OutputKind::captured : OutputKind::streamed;
  }

  Machine running_machine(Session& session) const {
    auto machine = find_machine(session, name_);
    if (machine.state() != MachineState::running) start(session, machine);
    return machine;
  }

  GuestExit run_once(Session& session) const {
    auto plan = this->plan();
    streams_.apply(plan, output_kind(session));
    auto machine = running_machine(session);
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

  StreamFlags streams_;
  LimitFlags limits_;
  bool detach_ = false;
  bool list_ = false;
  std::optional<std::string> attach_;
  std::optional<std::string> wait_;
  std::optional<std::string> kill_;
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
