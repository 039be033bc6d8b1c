// What may be put right without asking, and what only its owner can decide.
//
//   for (const auto& done : holt::repair(host)) std::cout << done.what << ": " << done.subject << '\n';
//   for (const auto& machine : holt::broken_machines(host)) std::cout << machine.name << ": " <<
//   machine.reason;
//
// Depends on base/ only.
#pragma once

#include "holt/machine/host_config.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace holt {

/// One thing that was put right.
struct Repair {
  std::string what;     ///< "made a folder"
  std::string subject;  ///< the path or the machine
};

/// Makes folders that are missing and closes those that others can read; ends the VMMs of monitors that died;
/// removes what dead processes left half-made or half-removed, their sockets, and templates that are damaged;
/// forgets a verdict against KVM, so that it is tried again. Touches no machine's record, disk or memory, no
/// image, and installs nothing. What cannot be done is logged and left out. Throws Error STORAGE_ERROR,
/// PERMISSION_DENIED when a folder of holt cannot be made. Thread-safe; safe beside any other use of the same
/// folders.
std::vector<Repair> repair(const HostConfig& host);

/// A machine whose record cannot be read, or whose disk is gone.
struct BrokenMachine {
  std::string name;
  std::string reason;
  std::uint64_t bytes = 0;  ///< blocks of its folder on the host's disk
};

/// Those that no start brings back. Only `holt rm --force` removes one: something of it may still be of use.
std::vector<BrokenMachine> broken_machines(const HostConfig& host);

}  // namespace holt
