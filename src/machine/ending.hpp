// The end of a machine's processes, and the lock that says there are none.
#pragma once

#include "holt/base/process.hpp"
#include "machine/record.hpp"
#include "machine/stream_connection.hpp"

#include <chrono>
#include <optional>
#include <string>

namespace holt::machine {

/// What killed processes get to be gone.
inline constexpr auto k_remove_deadline = std::chrono::seconds(10);
/// Between two looks at something that tells nobody of its change.
inline constexpr auto k_poll_step = std::chrono::milliseconds(2);

std::string name_of(const MachineFolder& folder);

/// The folder's lock; nothing while another has it. Throws Error NOT_FOUND when the machine is gone.
std::optional<FileLock> try_lock(const MachineFolder& folder);

/// Between two looks. Throws Error CANCELLED, or TIMEOUT: "NAME did not WHAT in time".
void check_wait(const MachineFolder& folder, Deadline deadline,
                const std::optional<CancellationToken>& cancel, const char* what);

/// The monitor of the life that goes on now; nothing where there is none, or it has not written yet who it
/// is.
std::optional<ProcessIdentity> living_monitor(const MachineFolder& folder);

/// Waits for the end of a monitor, not for that of another that may have followed. Throws Error TIMEOUT,
/// CANCELLED.
void await_death(const MachineFolder& folder, const std::optional<ProcessIdentity>& monitor,
                 const Wait& wait);
/// Kills the processes of one life, and nothing of another that has begun behind it. Throws Error TIMEOUT
/// when one of them cannot be ended.
void end_life(const MachineFolder& folder, const ProcessIdentity& monitor);
/// Kills the VMM that a folder's status names. True when it is dead. Called with the folder's lock.
bool end_vmm(const MachineFolder& folder, Deadline deadline);
/// Kills monitor and VMM of a folder and takes its lock. Throws Error TIMEOUT when one of them cannot be
/// ended.
FileLock end_by_force(const MachineFolder& folder, Deadline deadline);
/// Error TIMEOUT of processes that cannot be ended.
[[noreturn]] void throw_unkillable(const MachineFolder& folder);

}  // namespace holt::machine
