// What keeps QEMU away from the host, and what of it works here.
//
//   for (const auto& part : holt::probe_jail(host)) {
//     if (part.state != holt::JailState::on) std::cerr << to_string(part.part) << ": " << part.detail <<
//     "\n";
//   }
//
// Every machine's QEMU runs in the jail; a host that lacks a part of it gets the machine without that part,
// unless HostConfig::jail asks for all. Depends on base/.
#pragma once

#include "holt/machine/host_config.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace holt {

/// The parts of the jail, each of which can be missing on a host.
enum class JailPart {
  user,        ///< an unprivileged user: never root
  namespaces,  ///< processes, network, IPC, mounts and host name of its own
  files,       ///< only the files that it needs are there
  syscalls,    ///< system call filters: QEMU's and ours
  privileges,  ///< no capability, and none to be had
  limits,      ///< bounds on memory, threads and CPU
};
std::string_view to_string(JailPart part);

enum class JailState {
  on,
  off,         ///< switched off by HostConfig::jail
  impossible,  ///< not possible on this host
};
/// "on", "off", "not possible here"
std::string_view to_string(JailState state);

struct JailPartReport {
  JailPart part = JailPart::user;
  JailState state = JailState::off;
  std::string detail = {};  ///< how it is done, or why it is not
  std::string fix = {};     ///< what the user can do, for one that is not on
};

/// One entry for each part, in the order of JailPart.
using JailReport = std::vector<JailPartReport>;

/// Puts QEMU, asked for its version only, into the jail and says what held. Takes a few tens of milliseconds,
/// at most 10 s. Throws Error HYPERVISOR_UNAVAILABLE when there is no QEMU, or none that starts in the jail.
JailReport probe_jail(const HostConfig& host);

}  // namespace holt
