#include "cli/commands/commands.hpp"
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
            .example = "holt start dev"};
  }

  void declare(Options& options) override {
    options.arguments("NAME", names_, Need::required, "Machines");
    options.later_flag("-a,--attach", "attaching to a start");
    options.later_value("--wait", "waiting for ports");
    options.duration("--wait-timeout", timeout_, "Give up after so long (default 30s)");
  }

  Outcome run(Session& session) override {
    Successes started(session);
    for_each_name(session, names_, [&](const std::string& name) {
      auto machine = find_machine(session, name);
      auto options = session.start_options();
      if (timeout_) options.call.deadline = Deadline::after(*timeout_);
      machine.start(options);
      session.output.clear_progress();
      auto info = machine.info();
      if (info.accelerator) session.warn_of(*info.accelerator);
      started.add(machine.name());
    });
    started.finish();
    return ToolExit{};
  }

 private:
  std::vector<std::string> names_;
  std::optional<Duration> timeout_;
};

}  // namespace

std::unique_ptr<Command> make_start() {
  return std::make_unique<StartCommand>();
}

}  // namespace holt::cli
