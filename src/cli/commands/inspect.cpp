#include "cli/commands/commands.hpp"
#include "cli/machines.hpp"
#include "cli/table.hpp"

#include <string>
#include <vector>

namespace holt::cli {
namespace {

class InspectCommand : public Command {
 public:
  CommandInfo info() const override {
    return {.name = "inspect",
            .group = Group::machines,
            .summary = "Print everything known of machines as a JSON array",
            .usage = "[flags] NAME...",
            .example = "holt inspect dev --format '{{.state}} {{.accelerator}}'",
            .takes_format = true};
  }

  void declare(Options& options) override { options.arguments("NAME", names_, Need::required, "Machines"); }

  Outcome run(Session& session) override {
    Json list = Json::array();
    for (const auto& name : names_) list.push_back(machine_json(find_machine(session, name)));
    if (!session.globals.format) {
      session.output.line(dump_json(list, {.indent = session.globals.json ? 0 : 2}));
      return ToolExit{};
    }
    for (const auto& object : list) session.output.line(format_template(*session.globals.format, object));
    return ToolExit{};
  }

 private:
  std::vector<std::string> names_;
};

}  // namespace

std::unique_ptr<Command> make_inspect() {
  return std::make_unique<InspectCommand>();
}

}  // namespace holt::cli
