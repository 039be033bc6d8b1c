#include "cli/commands/commands.hpp"
#include "cli/errors.hpp"
#include "cli/machine_flags.hpp"
#include "cli/machines.hpp"

#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>

namespace holt::cli {
namespace {

class UpdateCommand : public Command {
 public:
  CommandInfo info() const override {
    return {.name = "update",
            .group = Group::machines,
            .summary = "Change the size, the environment, the labels or the idle time of a machine",
            .usage = "[flags] NAME",
            .examples = {"holt update dev --disk 40G --label team=red"}};
  }

  void declare(Options& options) override {
    options.argument("NAME", name_, "Machine");
    options.number("--cpus", "N", resize_.cpus, "Virtual CPUs from the next start on");
    options.memory("-m,--memory", resize_.memory_mb, "Memory from the next start on; a bare number is MiB");
    options.disk("--disk", resize_.disk_gb, "A larger disk, at once when it runs; a bare number is GiB");
    options.texts("-e,--env", "NAME[=VALUE]", env_,
                  "Set an environment variable from the next start on; a bare NAME is copied from here");
    options.texts("--env-file", "FILE", env_files_, "Set those of a file of such lines");
    options.texts("--remove-env", "NAME", removed_env_, "Take an environment variable away");
    options.texts("--label", "KEY=VALUE", labels_, "Set a label");
    options.texts("--remove-label", "KEY", removed_labels_, "Take a label away");
    options.duration("--idle-timeout", idle_stop_, "Stop it after so long without client and user process");
    options.duration("--idle-suspend", idle_suspend_, "Suspend it after so long without client");
    options.flag("--no-idle", no_idle_, "Neither stop nor suspend it when it is idle");
  }

  Outcome run(Session& session) override {
    auto machine = find_machine(session, name_);
    auto changes = changes_wanted();
    bool updates =
        !changes.labels.empty() || !changes.env.empty() || changes.idle_stop || changes.idle_suspend;
    bool resizes = resize_.cpus || resize_.memory_mb || resize_.disk_gb;
    if (!updates && !resizes)
      throw usage_error("nothing to change: give a flag", "See 'holt update --help'.");
    if (updates) machine.update(changes);
    resize_.call = session.call();
    if (resizes) machine.resize(resize_);
    if (session.globals.json) {
      session.output.json(machine_json(machine));
    } else {
      session.output.line(machine.name());
    }
    return ToolExit{};
  }

 private:
  UpdateOptions changes_wanted() const {
    UpdateOptions changes;
    for (const auto& label : labels_) {
      auto equals = label.find('=');
      if (equals == std::string::npos || equals == 0) {
        throw usage_error(fmt::format("--label: '{}' is not of the form KEY=VALUE", printable(label, 80)));
      }
      changes.labels[label.substr(0, equals)] = label.substr(equals + 1);
    }
    for (const auto& key : removed_labels_) changes.labels[key] = std::nullopt;
    for (const auto& file : env_files_) {
      for (auto& [name, value] : read_env_file(file)) changes.env[name] = std::move(value);
    }
    for (auto& [name, value] : parse_env(env_)) changes.env[name] = std::move(value);
    for (const auto& name : removed_env_) changes.env[name] = std::nullopt;
    if (no_idle_) changes.idle_stop = changes.idle_suspend = std::optional<Duration>();
    if (idle_stop_) changes.idle_stop = idle_stop_;
    if (idle_suspend_) changes.idle_suspend = idle_suspend_;
    return changes;
  }

  std::string name_;
  ResizeOptions resize_;
  std::vector<std::string> env_;
  std::vector<std::string> env_files_;
  std::vector<std::string> removed_env_;
  std::vector<std::string> labels_;
  std::vector<std::string> removed_labels_;
  std::optional<Duration> idle_stop_;
  std::optional<Duration> idle_suspend_;
  bool no_idle_ = false;
};

}  // namespace

std::unique_ptr<Command> make_update() {
  return std::make_unique<UpdateCommand>();
}

}  // namespace holt::cli
