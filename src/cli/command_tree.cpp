#include "cli/command_tree.hpp"

#include "cli/command_app.hpp"
#include "cli/help_format.hpp"

namespace holt::cli {
namespace {

FlagFacts flag_of(const CLI::Option& option) {
  FlagFacts flag{.placeholder = option.get_expected_max() > 0 ? option.get_type_name() : "",
                 .help = option.get_description()};
  for (const auto& name : option.get_snames()) flag.names.push_back("-" + name);
  for (const auto& name : option.get_lnames()) flag.names.push_back("--" + name);
  return flag;
}

VerbFacts verb_of(Command& command) {
  GlobalOptions globals;
  VerbFacts verb{.info = command.info()};
  auto app = command_app(command, globals);
  for (const auto* option : app->get_options()) {
    if (option->get_positional()) {
      verb.arguments.push_back({.name = option->get_name(true),
                                .help = option->get_description(),
                                .repeats = option->get_expected_max() > 1});
    } else if (option->get_group() == k_refused_group) {
      verb.refused.push_back(flag_of(*option));
    } else if (option->get_group() == k_own_group) {
      verb.flags.push_back(flag_of(*option));
    } else {
      verb.globals.push_back(flag_of(*option));
    }
  }
  return verb;
}

}  // namespace

CommandTree describe(const Commands& commands) {
  CommandTree tree;
  GlobalOptions globals;
  auto app = global_app(globals);
  for (const auto* option : app->get_options()) {
    if (option->get_group() != k_refused_group) tree.globals.push_back(flag_of(*option));
  }
  for (const auto& command : commands) tree.verbs.push_back(verb_of(*command));
  return tree;
}

}  // namespace holt::cli
