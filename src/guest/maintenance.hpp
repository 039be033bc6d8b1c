// Ending commands and bringing the disk to rest. Blocking: for jobs.
#pragma once

#include "guest/outcome.hpp"

#include <chrono>
#include <cstdint>
#include <string>

namespace holt::guest {

/// Writes the root file system out; freezes or thaws it when asked to. Freezing what is frozen is no error.
Outcome<protocol::Done> sync_root(protocol::Freeze freeze);

/// SIGTERM to every process below the cgroup folder, SIGKILL to all that live `grace` later; returns when
/// none does, 2 s after that at the latest.
void end_all_commands(const std::string& cgroup_folder, std::chrono::milliseconds grace);

std::uint64_t monotonic_milliseconds();

}  // namespace holt::guest
