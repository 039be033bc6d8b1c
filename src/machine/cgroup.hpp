// A cgroup v2 of its own for a process, where the host delegates one.
//
// Kernel: Documentation/admin-guide/cgroup-v2.rst; delegation: systemd's CGROUP_DELEGATION.
#pragma once

#include "holt/base/fd.hpp"

#include <cstdint>
#include <filesystem>
#include <optional>

namespace holt::machine {

/// Bounds on a jailed process.
struct JailLimits {
  std::uint64_t guest_memory = 0;  ///< bytes
  unsigned cpus = 1;
  enum class Life { short_lived, machine };
  Life life = Life::machine;  ///< short_lived: builds and probes, which also get a bound on CPU time
};

/// Owns a cgroup and removes it when it goes; its processes must be dead then. Movable.
class Cgroup {
 public:
  /// A new one below the nearest cgroup of this process that the host lets it manage; nothing where there is
  /// none with the controllers for memory and processes.
  static std::optional<Cgroup> make(const JailLimits& limits);

  Cgroup(Cgroup&& other) noexcept;
  Cgroup& operator=(Cgroup&& other) noexcept;
  ~Cgroup();

  /// Its cgroup.procs, open for writing: a process that writes "0" to it joins.
  int procs_fd() const { return procs_.get(); }

 private:
  Cgroup(std::filesystem::path path, Fd procs) : path_(std::move(path)), procs_(std::move(procs)) {}

  std::filesystem::path path_;
  Fd procs_;
};

}  // namespace holt::machine
