// The jail around QEMU: namespaces, a root of its own, Landlock where those are not possible, a system call
// filter, no privileges, limits. docs/security.md has what it promises.
//
//   auto jailed = start_in_jail(spec, jail_plan(command), JailChoice::automatic);
#pragma once

#include "holt/base/process.hpp"
#include "holt/machine/jail.hpp"
#include "machine/cgroup.hpp"
#include "machine/qemu_command.hpp"

#include <cstdint>
#include <filesystem>
#include <optional>
#include <vector>

namespace holt::machine {

/// A file or folder that a jailed process sees, at the same path as outside.
struct JailedFile {
  enum class Kind {
    read,    ///< a file to read
    write,   ///< a file to read and write
    tree,    ///< a folder to read and execute from, with all below it
    device,  ///< a device to read and write
  };
  std::filesystem::path path = {};
  Kind kind = Kind::read;
};

/// What a process in the jail may have. Plain data.
struct JailPlan {
  std::vector<JailedFile> files = {};
  JailLimits limits = {};
};

/// What QEMU needs to run a command. Looks at the host's files for what is there.
JailPlan jail_plan(const QemuCommand& command);

/// A process in its jail, and what of the jail holds. The cgroup goes after the process.
struct Jailed {
  std::optional<Cgroup> cgroup = std::nullopt;
  Process process = {};
  JailReport report = {};
};

/// Starts a process in the strongest jail that this host allows, trying weaker ones in turn. Throws Error as
/// Process::start(), and NOT_SUPPORTED when JailChoice::required and a part is missing.
Jailed start_in_jail(const ProcessSpec& spec, const JailPlan& plan, JailChoice choice);

}  // namespace holt::machine
