// Commands over a StreamConnection.
#pragma once

#include "holt/machine/exec.hpp"
#include "machine/stream_connection.hpp"

#include <optional>
#include <string>
#include <vector>

namespace holt::machine {

/// argv, or a script of /bin/sh.
struct Command {
  std::vector<std::string> argv = {};
  std::optional<std::string> script = std::nullopt;
};

/// Checks the options and starts the command. Throws Error INVALID_CONFIG, and as StreamConnection::open.
ExecStream start_command(const MachineFolder& folder, const Command& command, const ExecOptions& options,
                         std::uint64_t output_limit);
/// Runs it to its end and collects.
ExecResult run_command(const MachineFolder& folder, const Command& command, const ExecOptions& options);

}  // namespace holt::machine
