#include "cli/commands/commands.hpp"
#include "cli/machines.hpp"

#include <string>
#include <vector>

namespace holt::cli {
namespace {

/// pause, suspend and resume: one thing done to each machine named.
class LifeCommand : public Command {
 public:
  using Action = void (*)(Session&, Machine&);
  LifeCommand(CommandInfo info, Action action) : info_(std::move(info)), action_(action) {}

  CommandInfo info() const override { return info_; }
  void declare(Options& options) override { options.arguments("NAME", names_, Need::required, "Machines"); }
  Outcome run(Session& session) override {
    Successes changed(session);
    auto change = [&](const std::string& name) {
      auto machine = find_machine(session, name);
      action_(session, machine);
      session.output.clear_progress();
      changed.add(machine.name());
    };
    for_each_name(session, names_, change, [&] { changed.print(); });
    return ToolExit{};
  }

 private:
  CommandInfo info_;
  Action action_;
  std::vector<std::string> names_;
};

}  // namespace

std::unique_ptr<Command> make_pause() {
  return std::make_unique<LifeCommand>(
      CommandInfo{.name = "pause",
                  .group = Group::machines,
                  .summary = "Freeze the processors of machines; their memory stays",
                  .usage = "[flags] NAME...",
                  .examples = {"holt pause dev"}},
      [](Session& session, Machine& machine) { machine.pause(session.call()); });
}

std::unique_ptr<Command> make_suspend() {
  return std::make_unique<LifeCommand>(
      CommandInfo{.name = "suspend",
                  .group = Group::machines,
                  .summary = "Save the memory of machines to disk and free it; processes go on after a start",
                  .usage = "[flags] NAME...",
                  .examples = {"holt suspend dev"}},
      [](Session& session, Machine& machine) { machine.suspend(session.call()); });
}

std::unique_ptr<Command> make_resume() {
  return std::make_unique<LifeCommand>(
      CommandInfo{.name = "resume",
                  .group = Group::machines,
                  .summary = "Let paused or suspended machines go on",
                  .usage = "[flags] NAME...",
                  .examples = {"holt resume dev"}},
      [](Session& session, Machine& machine) { machine.resume(session.start_options()); });
}

}  // namespace holt::cli
