// The socket in a machine's folder.
#pragma once

#include "holt/base/fd.hpp"
#include "machine/record.hpp"

namespace holt::monitor {

/// Binds and listens on FOLDER/monitor.sock, mode 0600. The folder's lock must be held: what has the name
/// before is left by a dead monitor and removed. Throws Error.
Fd listen_in(const machine::MachineFolder& folder);
void remove_socket(const machine::MachineFolder& folder);

}  // namespace holt::monitor
