// One command on this host: a session of its own, both outputs captured under one cap, killed as a group.
#pragma once

#include "holt/base/cancellation.hpp"
#include "holt/workspace/backend.hpp"

#include <map>
#include <string>

namespace holt {

struct LocalCommand {
  WorkspaceCommand command;
  std::map<std::string, std::string> env;  ///< the whole environment
  std::string directory;
  std::optional<Duration> timeout;
};

/// Runs it to its end; see SupportsCommands::run. Throws PathError E2BIG for a command line that the kernel
/// does not take, Error CANCELLED.
CommandResult run_local_command(const LocalCommand& spec, const CancellationToken& cancel);

}  // namespace holt
