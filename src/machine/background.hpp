// Commands that go on without a caller, over the machine's socket.
#pragma once

#include "holt/machine/exec.hpp"
#include "machine/exec_stream.hpp"
#include "machine/record.hpp"

#include <string>
#include <vector>

namespace holt::machine {

// As the functions of holt::Machine (holt/machine/machine.hpp).
CommandInfo start_in_background(const MachineFolder& folder, const Command& command,
                                const ExecOptions& options);
std::vector<CommandInfo> background_commands(const MachineFolder& folder, const CallOptions& options);
ExecStream attach_to(const MachineFolder& folder, const std::string& id, const AttachOptions& options,
                     Sending sending = Sending::waits);
CommandInfo wait_for(const MachineFolder& folder, const std::string& id, const CallOptions& options);
void send_signal(const MachineFolder& folder, const std::string& id, int signal_number,
                 const CallOptions& options);
CommandInfo kill_in_background(const MachineFolder& folder, const std::string& id,
                               const CallOptions& options);

/// Throws Error INVALID_CONFIG, TOO_LARGE.
protocol::StartCommandRequest start_request(const Command& command, const ExecOptions& options);
/// Throws Error INVALID_CONFIG.
protocol::SignalCommandRequest signal_request(const std::string& id, int signal_number);
/// Throws Error GUEST_PROTOCOL, as command_infos().
CommandInfo command_info(protocol::CommandStatus status);
std::vector<CommandInfo> command_infos(protocol::CommandsReply reply);

}  // namespace holt::machine
