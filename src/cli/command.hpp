// One verb of the command line. Each has a class and a file of its own in commands/.
#pragma once

#include "cli/options.hpp"
#include "cli/outcome.hpp"
#include "cli/session.hpp"

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace holt::cli {

enum class Group { machines, images, agents, host };

/// What stands behind the flags of a verb.
enum class Tail {
  none,        ///< arguments among the flags, as usual
  guest_argv,  ///< from the first word that is no flag on, nothing is parsed: it belongs to the guest
  anything,    ///< nothing is parsed at all
};

struct CommandInfo {
  std::string_view name;  ///< "ls", or two words: "image ls"
  std::vector<std::string_view> aliases = {};
  Group group = Group::machines;
  std::string_view summary;                ///< one line, no full stop
  std::string_view usage;                  ///< what follows the name
  std::vector<std::string_view> examples;  ///< whole command lines; at least one
  Tail tail = Tail::none;
  std::string_view tail_argument = {};  ///< of guest_argv: what its first word is, NAME or IMAGE
  int failure_code = k_exit_failed;     ///< exit code when holt itself fails
  bool takes_format = false;            ///< whether --format means something
};

class Command {
 public:
  virtual ~Command() = default;
  virtual CommandInfo info() const = 0;
  /// Declares flags and arguments; their targets are members.
  virtual void declare(Options&) {}
  /// Takes the unparsed rest (with a leading "--" where one was given).
  virtual void take_tail(const std::vector<std::string>&) {}
  /// Does it. Throws Error.
  virtual Outcome run(Session& session) = 0;
};

using Commands = std::vector<std::unique_ptr<Command>>;

}  // namespace holt::cli
