// Creating, starting, ending and removing machines.
#pragma once

#include "holt/machine/config.hpp"
#include "holt/machine/host_config.hpp"
#include "holt/machine/machine.hpp"
#include "holt/protocol/messages.hpp"
#include "machine/launch.hpp"
#include "machine/record.hpp"

#include <map>
#include <optional>
#include <string>

namespace holt::machine {

/// Folder, record and disk of a new machine, with its lock.
struct Defined {
  MachineFolder folder;
  FileLock lock;
};
/// `config` with a name. Throws as Machine::define().
Defined define_machine(const MachineConfig& config, const HostConfig& host);

/// What a machine needs to start here: found, probed, its template built where it was missing.
Launch prepare_launch(const Resources& resources, const StartOptions& options, const HostConfig& host);

/// Starts the monitor, hands it the lock and waits for its report. Returns the control socket: closing it
/// ends a machine that is owned. Throws Error when the machine did not start; no process is left then, the
/// folder stays.
Fd launch_machine(const MachineFolder& folder, FileLock lock, const Launch& launch,
                  const StartOptions& options, const HostConfig& host);

/// The machine as the caller of its start owns it, in a Launch.
void own(Launch& launch, Ownership ownership);
Ownership ownership_of(OwnerEnd end);

/// Starts a machine that exists, resumes one that is paused or suspended; quiet when it runs. Returns the
/// control socket of a machine that this call started with an OwnerEnd other than keep, else nothing.
Fd start_machine(const MachineFolder& folder, const StartOptions& options, const HostConfig& host);
void stop_machine(const MachineFolder& folder, const StopOptions& options, const HostConfig& host);
void pause_machine(const MachineFolder& folder, const CallOptions& options);
void suspend_machine(const MachineFolder& folder, const CallOptions& options);
/// As start_machine(), but INVALID_STATE for a machine that is neither paused nor suspended nor runs.
Fd resume_machine(const MachineFolder& folder, const StartOptions& options, const HostConfig& host);
Resources resize_machine(const MachineFolder& folder, const ResizeOptions& options);
void update_machine(const MachineFolder& folder, const UpdateOptions& changes);
MachineStats machine_stats(const MachineFolder& folder, const CallOptions& options);
MachineInfo wait_for_machine(const MachineFolder& folder, WaitFor what, const CallOptions& options);
void remove_machine(const MachineFolders& folders, const MachineFolder& folder, const RemoveOptions& options);
/// Removes ephemeral machines whose monitor was killed, and what dead processes left half-made.
void sweep_machines(const MachineFolders& folders);

/// Asks a monitor. True when the machine has done it; false when it was in no state for it any more. Throws
/// the refusal for any other reason.
bool change_life(const MachineFolder& folder, protocol::LifeChange change, Deadline deadline,
                 const std::optional<CancellationToken>& cancel);

}  // namespace holt::machine
