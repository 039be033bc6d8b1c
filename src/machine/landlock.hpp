// Landlock: a process gives up files, network and signals for itself and its children, without any privilege.
//
// Kernel: Documentation/userspace-api/landlock.rst. Numbers of the ABI are spelled out here, because headers
// of the build host may be older than the kernel that runs it.
#pragma once

#include <cstdint>
#include <vector>

namespace holt::machine {

/// What the running kernel knows; 0 where Landlock is not there or switched off.
int landlock_version();

/// A path and the most that is allowed below it.
struct LandlockRule {
  enum class Access { read, write, tree, device };
  const char* path = nullptr;
  Access access = Access::read;
};

/// Confines the calling process to these paths; TCP, abstract sockets and signals to other processes go too
/// where the kernel knows how. A path that is not there is passed over. Needs no_new_privs. For a child
/// before exec: does not allocate. False with errno set when the kernel refuses.
bool confine_by_landlock(int version, const std::vector<LandlockRule>& rules) noexcept;

}  // namespace holt::machine
