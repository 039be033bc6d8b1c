#include "cli/version.hpp"

#include "cli/commands/commands.hpp"
#include "cli/host_facts.hpp"

#include <optional>
#include <string>

#include <fmt/format.h>

namespace holt::cli {
namespace {

class VersionCommand : public Command {
 public:
  CommandInfo info() const override {
    return {.name = "version",
            .group = Group::host,
            .summary = "Print the versions of holt and its engine",
            .usage = "[flags]",
            .examples = {"holt version --json"}};
  }

  Outcome run(Session& session) override {
    auto engine = engine_versions(session);
    if (session.globals.json) {
      session.output.json({{"version", version()}, {"commit", commit()}, {"engine", engine}, {"api", 1}});
      return ToolExit{};
    }
    auto shown = [&](const char* key) {
      return engine[key].is_null() ? std::string("not installed") : engine[key].get<std::string>();
    };
    session.output.line(fmt::format("holt {} ({})", version(), commit()));
    session.output.line(fmt::format("qemu {}", shown("qemu")));
    session.output.line(fmt::format("kernel {}", shown("kernel")));
    return ToolExit{};
  }
};

}  // namespace

std::unique_ptr<Command> make_version() {
  return std::make_unique<VersionCommand>();
}

}  // namespace holt::cli
