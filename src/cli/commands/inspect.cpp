#include "cli/commands/commands.hpp"
#include "cli/machines.hpp"

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
            .examples = {"holt inspect dev --format '{{.state}} {{.accelerator}}'"},
            .takes_format = true};
  }

  void declare(Options& options) override { options.arguments("NAME", names_, Need::required, "Machines"); }

  Outcome run(Session& session) override {
    Json list = Json::array();
    for_each_name(
        session, names_,
        [&](const std::string& name) { list.push_back(machine_json(find_machine(session, name))); },
        [&] { session.print_objects(list); });
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
