// From argv to a verb with its flags set: [global flags] VERB [flags] [arguments].
#pragma once

#include "cli/command.hpp"

#include <string>
#include <vector>

namespace holt::cli {

/// What argv asks for.
struct Parsed {
  enum class Kind { run, help, version };
  Kind kind = Kind::run;
  Command* command = nullptr;  ///< of run, and of help about one verb
  std::string group = {};      ///< of help about a group of verbs: "image"
};

/// Parses argv (without the program's name) into `globals` and the verb's own members.
/// Throws Error: USAGE for a mistake, NOT_SUPPORTED for a flag or verb of a later version.
Parsed parse(const std::vector<std::string>& argv, const Commands& commands, GlobalOptions& globals);

/// True when argv or the environment ask for JSON, also where argv is wrong otherwise.
bool asks_for_json(const std::vector<std::string>& argv, const Commands& commands);

/// A mistake in how a verb is used, with a hint at its help where it has none of its own.
Error with_help_hint(const Error& error, const Command* command);

/// The verb that argv names; null when there is none.
const Command* named_command(const std::vector<std::string>& argv, const Commands& commands);

/// The help text of all verbs, of a group of them, or of one: an example first.
std::string help_of(const Parsed& parsed, const Commands& commands);

}  // namespace holt::cli
