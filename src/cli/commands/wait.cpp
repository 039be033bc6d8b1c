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
            .summary = "Wait until a machine is ready, or has ended",
            .usage = "[flags] NAME",
            .example = "holt wait --for stopped --timeout 5m dev"};
  }

  void declare(Options& options) override {
    options.argument("NAME", name_, "Machine");
    options.text("--for", "ready|stopped", what_,
                 "ready: accepts commands; stopped: has no process (default)");
    options.duration("--timeout", timeout_, "Give up after so long (default: never)");
  }

  Outcome run(Session& session) override {
    auto word = what_.value_or("stopped");
    if (word == "exit") throw later_error("waiting for the command of 'run -d'");
    if (word != "ready" && word != "stopped") {
      throw usage_error(fmt::format("--for: '{}' is neither ready nor stopped", printable(word, 40)));
    }
    auto call = session.call();
    if (timeout_) call.deadline = Deadline::after(*timeout_);
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
  std::string name_;
  std::optional<std::string> what_;
  std::optional<Duration> timeout_;
};

}  // namespace

std::unique_ptr<Command> make_wait() {
  return std::make_unique<WaitCommand>();
}

}  // namespace holt::cli
