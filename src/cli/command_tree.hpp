// The command line as data, read from the parsers themselves: what completions and manual pages are written
// from, so that neither can say anything else than what is parsed.
#pragma once

#include "cli/command.hpp"

#include <string>
#include <vector>

namespace holt::cli {

struct FlagFacts {
  std::vector<std::string> names = {};  ///< "-f", "--force"; the long one last
  std::string placeholder;              ///< of its value; empty where it takes none
  std::string help;
};

struct ArgumentFacts {
  std::string name;  ///< says what it is: NAME (of a machine), REFERENCE, FILE ...
  std::string help;
  bool repeats = false;
};

struct VerbFacts {
  CommandInfo info;
  std::vector<FlagFacts> flags = {};    ///< its own
  std::vector<FlagFacts> globals = {};  ///< those that it leaves as they are
  std::vector<FlagFacts> refused = {};  ///< of later versions
  std::vector<ArgumentFacts> arguments = {};

  bool is_hidden() const { return info.tail == Tail::anything; }
};

struct CommandTree {
  std::vector<FlagFacts> globals;  ///< before the verb
  std::vector<VerbFacts> verbs;    ///< in the order of help
};

CommandTree describe(const Commands& commands);

}  // namespace holt::cli
