// What is known of machines without starting anything.
#pragma once

#include "holt/machine/types.hpp"
#include "machine/record.hpp"

#include <string>
#include <vector>

namespace holt::machine {

/// Throws Error NOT_FOUND. A damaged record gives a failed machine with the reason. Asks the guest for a sign
/// of life for 250 ms at most.
MachineInfo machine_info(const MachineFolder& folder);
std::vector<MachineInfo> all_machine_infos(const MachineFolders& folders);
MachineState machine_state(const MachineFolder& folder);
/// The machine object of docs/reference.md.
std::string machine_json(const MachineInfo& info);

/// Resident memory of a process; 0 when it is gone.
std::uint64_t resident_memory(pid_t pid);
/// What a process has used of the host's processors; 0 when it is gone.
Duration processor_time(pid_t pid);

}  // namespace holt::machine
