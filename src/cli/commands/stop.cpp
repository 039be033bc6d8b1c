#include "cli/commands/commands.hpp"
#include "cli/errors.hpp"
#include "cli/machines.hpp"

#include <optional>
#include <string>
#include <vector>

namespace holt::cli {
namespace {

class StopCommand : public Command {
 public:
  CommandInfo info() const override {
    return {.name = "stop",
            .group = Group::machines,
            .summary = "Flush and stop machines; their disks stay",
            .usage = "[flags] NAME...",
            .examples = {"holt stop dev"}};
  }

  void declare(Options& options) override {
    options.arguments("NAME", names_, Need::optional, "Machines");
    options.flag("-a,--all", all_, "All that run");
    options.duration("-t,--time", grace_,
                     "Seconds for the guest to flush before it is ended without it (default 10)");
    options.flag("--kill", kill_, "End them at once; what the guest did not write is lost");
    options.later_value("--drain", "draining before a stop");
  }

  Outcome run(Session& session) override {
    if (names_.empty() != all_) throw usage_error("name machines, or give --all, not both");
    if (all_) names_ = running(session);
    StopOptions options{.call = session.call()};
    if (grace_) options.grace = *grace_;
    if (kill_) options.grace = Duration::zero();
    Successes stopped(session);
    auto stop = [&](const std::string& name) {
      auto machine = find_machine(session, name);
      machine.stop(options);
      stopped.add(machine.name());
    };
    for_each_name(session, names_, stop, [&] { stopped.print(); });
    return ToolExit{};
  }

 private:
  static std::vector<std::string> running(Session& session) {
    std::vector<std::string> names;
    for (const auto& info : Machine::list_all(session.host())) {
      if (info.state == MachineState::running || info.state == MachineState::starting)
        names.push_back(info.name);
    }
    return names;
  }

  std::vector<std::string> names_;
  bool all_ = false;
  bool kill_ = false;
  std::optional<Duration> grace_;
};

}  // namespace

std::unique_ptr<Command> make_stop() {
  return std::make_unique<StopCommand>();
}

}  // namespace holt::cli
