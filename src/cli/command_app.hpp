// CLI11's parsers of the command line: one for the words before the verb, one for each verb.
#pragma once

#include "cli/command.hpp"

#include <memory>

#include <CLI/CLI.hpp>

namespace holt::cli {

/// Groups of a verb's flags; those of k_refused_group (help_format.hpp) are the third.
inline constexpr std::string_view k_own_group = "Flags";
inline constexpr std::string_view k_global_group = "Global flags";

/// The global flags alone. `globals` gets their values.
std::unique_ptr<CLI::App> global_app(GlobalOptions& globals);
/// The flags and arguments of a verb, with the global flags among them.
std::unique_ptr<CLI::App> command_app(Command& command, GlobalOptions& globals);

}  // namespace holt::cli
