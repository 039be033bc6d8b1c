#include "cli/commands/commands.hpp"
#include "cli/images.hpp"
#include "cli/machine_flags.hpp"
#include "cli/machines.hpp"
#include "holt/machine/names.hpp"

#include <optional>
#include <string>

namespace holt::cli {
namespace {

class CreateCommand : public Command {
 public:
  CommandInfo info() const override {
    return {.name = "create",
            .group = Group::machines,
            .summary = "Make a named machine without starting it",
            .usage = "[flags] NEW_NAME [IMAGE]",
            .examples = {"holt create dev --cpus 4 -m 2G"}};
  }

  void declare(Options& options) override {
    options.argument("NEW_NAME", name_, "Name of the machine");
    options.optional_argument("IMAGE", image_, "Image (default: the default image)");
    options.flag("--start", start_, "Start it too");
    machine_.declare(options);
  }

  Outcome run(Session& session) override {
    check_machine_name(name_);
    auto config = machine_.config();
    config.name = name_;
    config.image = image_.value_or("");
    auto host = machine_.host(session);
    config.image = obtain_image_of(session, config.image, config.pull, host).reference;
    config.pull = image::PullPolicy::missing;
    auto machine =
        start_ ? Machine::create(config, session.start_options(), host) : Machine::define(config, host);
    session.output.clear_progress();
    auto info = machine.info();
    if (info.accelerator) session.warn_of(*info.accelerator);
    if (session.globals.json) {
      session.output.json(machine_json(machine));
    } else {
      session.output.line(machine.name());
    }
    return ToolExit{};
  }

 private:
  std::string name_;
  std::optional<std::string> image_;
  bool start_ = false;
  MachineFlags machine_;
};

}  // namespace

std::unique_ptr<Command> make_create() {
  return std::make_unique<CreateCommand>();
}

}  // namespace holt::cli
