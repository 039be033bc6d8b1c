#include "cli/background.hpp"
#include "cli/commands/commands.hpp"
#include "cli/errors.hpp"
#include "cli/machines.hpp"

#include <optional>
#include <string>

#include <fmt/format.h>

namespace holt::cli {
namespace {

class WaitCommand : public Command {
 public:
  CommandInfo info() const override {
    return {.name = "wait",
            .group = Group::machines,
            .summary = "Wait until a machine is ready, has ended, or its command has",
            .usage = "[flags] NAME",
            .examples = {"holt run -d --name job -- make test && holt wait --for exit job"}};
  }

  void declare(Options& options) override {
    options.argument("NAME", name_, "Machine; with --for exit also a command of it, NAME:ID");
    options.text(
        "--for", "ready|stopped|exit", what_,
        "ready: accepts commands; stopped: has no process (default); exit: the command of 'run -d' has "
        "ended, whose exit code is printed");
    options.duration("--timeout", timeout_, "Give up after so long (default: never)");
  }

  Outcome run(Session& session) override {
    auto word = what_.value_or("stopped");
    if (word != "ready" && word != "stopped" && word != "exit") {
      throw usage_error(fmt::format("--for: '{}' is none of ready, stopped and exit", printable(word, 40)));
    }
    auto call = session.call();
    if (timeout_) call.deadline = Deadline::after(*timeout_);
    if (word == "exit") return wait_for_exit(session, call);
    auto machine = find_machine(session, name_);
    auto info = machine.wait(word == "ready" ? WaitFor::ready : WaitFor::ended, call);
    if (session.globals.json) {
      session.output.json({{"machine", info.name}, {"state", to_string(info.state)}});
    } else {
      session.output.line(to_string(info.state));
    }
    return ToolExit{};
  }

 private:
  Outcome wait_for_exit(Session& session, const CallOptions& call) const {
    auto ref = name_.find(':') == std::string::npos ? CommandRef{.machine = name_, .id = {}}
                                                    : parse_command_ref("NAME", name_);
    auto machine = find_machine(session, ref.machine);
    auto command = machine.wait_command(ref.id.empty() ? main_command(machine, call) : ref.id, call);
    if (session.globals.json) {
      session.output.json(command_json(machine, command));
    } else {
      session.output.line(std::to_string(exit_of(command).result.shell_code()));
    }
    return ToolExit{};
  }

  /// The first that this life of the machine was given, which is that of 'run -d'.
  static std::string main_command(const Machine& machine, const CallOptions& call) {
    auto commands = machine.commands(call);
    if (!commands.empty()) return commands.front().id;
    throw Error(ErrorCode::not_found, fmt::format("'{}' has no command in the background", machine.name()),
                {.subject = machine.name(), .hint = "'holt run -d' and 'holt exec -d' start one."});
  }

  std::string name_;
  std::optional<std::string> what_;
  std::optional<Duration> timeout_;
};

}  // namespace

std::unique_ptr<Command> make_wait() {
  return std::make_unique<WaitCommand>();
}

}  // namespace holt::cli
