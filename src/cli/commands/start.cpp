#include "cli/commands/commands.hpp"
#include "cli/errors.hpp"
#include "cli/machines.hpp"

#include <string>
#include <vector>

namespace holt::cli {
namespace {

class StartCommand : public Command {
 public:
  CommandInfo info() const override {
    return {.name = "start",
            .aliases = {"up"},
            .group = Group::machines,
            .summary = "Start machines; quiet for those that run",
            .usage = "[flags] NAME...",
            .examples = {"holt start dev"}};
  }

  void declare(Options& options) override {
    options.arguments("NAME", names_, Need::required, "Machines");
    options.flag("-a,--attach", attach_, "Show the console until the machine ends or holt is interrupted");
    options.text("--wait", "ready|none", wait_,
                 "ready: return when it accepts commands (the default, and always so)");
    options.duration("--wait-timeout", timeout_, "Give up after so long (default 30s)");
  }

  Outcome run(Session& session) override {
    if (wait_ == "ports") throw later_error("waiting for ports");
    if (wait_ && wait_ != "ready" && wait_ != "none") throw usage_error("--wait: give ready or none");
    if (attach_ && names_.size() != 1) throw usage_error("--attach needs exactly one machine");
    Successes started(session);
    auto start = [&](const std::string& name) {
      auto machine = find_machine(session, name);
      auto options = session.start_options();
      if (timeout_) options.call.deadline = Deadline::after(*timeout_);
      machine.start(options);
      session.output.clear_progress();
      auto info = machine.info();
      if (info.accelerator) session.warn_of(*info.accelerator);
      started.add(machine.name());
    };
    for_each_name(session, names_, start, [&] { started.print(); });
    if (attach_) return follow_console(session, names_.front());
    return ToolExit{};
  }

 private:
  std::vector<std::string> names_;
  std::optional<Duration> timeout_;
  std::optional<std::string> wait_;
  bool attach_ = false;
};

}  // namespace

std::unique_ptr<Command> make_start() {
  return std::make_unique<StartCommand>();
}

}  // namespace holt::cli
