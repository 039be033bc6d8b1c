#include "cli/commands/commands.hpp"
#include "cli/errors.hpp"
#include "cli/parser.hpp"

#include <string>
#include <vector>

namespace holt::cli {
namespace {

class HelpCommand : public Command {
 public:
  CommandInfo info() const override {
    return {.name = "help",
            .group = Group::host,
            .summary = "Explain all verbs, or one",
            .usage = "[VERB]",
            .examples = {"holt help run"}};
  }

  void declare(Options& options) override {
    options.arguments("VERB", words_, Need::optional, "Verb, e.g. image ls");
  }

  Outcome run(Session& session) override {
    auto commands = make_commands();
    auto words = words_;
    words.emplace_back("--help");
    auto parsed = parse(words, commands, session.globals);
    if (parsed.kind != Parsed::Kind::help)
      return parsed.command->run(session);  // a later verb says that it is one
    session.output.out(help_of(parsed, commands));
    return ToolExit{};
  }

 private:
  std::vector<std::string> words_;
};

}  // namespace

std::unique_ptr<Command> make_help() {
  return std::make_unique<HelpCommand>();
}

}  // namespace holt::cli
