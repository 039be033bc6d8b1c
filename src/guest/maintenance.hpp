// Ending commands and bringing the disk to rest. Blocking: for jobs.
#pragma once

#include "guest/outcome.hpp"

#include <chrono>
#include <cstdint>
#include <map>
#include <string>

namespace holt::guest {

/// Writes the root file system out; freezes or thaws it when asked to. Freezing what is frozen is no error.
Outcome<protocol::Done> sync_root(protocol::Freeze freeze);

/// What processes are asked to end with, by the folder of their cgroup, where that is not SIGTERM.
using StopSignals = std::map<std::string, int>;

/// SIGTERM, or their own signal, to every process below the cgroup folder (empty: there is none), SIGKILL to
/// all that live `grace` later, then writes the root file system out and freezes it when asked to.
Outcome<protocol::Done> shut_down(const std::string& cgroup_folder, const StopSignals& stop_signals,
                                  std::chrono::milliseconds grace, protocol::Freeze freeze);

std::uint64_t monotonic_milliseconds();

struct KernelMemory {
  std::uint64_t total = 0;      ///< bytes
  std::uint64_t available = 0;  ///< bytes that programs could get
};
/// MemTotal and MemAvailable of /proc/meminfo, proc(5); zeroes where they cannot be read.
KernelMemory memory_of_kernel();

}  // namespace holt::guest
