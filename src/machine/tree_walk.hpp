// The names of a guest tree over a StreamConnection.
#pragma once

#include "holt/machine/walk.hpp"
#include "machine/record.hpp"
#include "machine/stream_connection.hpp"

#include <string>

namespace holt::machine {

TreeWalk walk_tree(const MachineFolder& folder, const std::string& path, const WalkOptions& options,
                   Sending sending = Sending::waits);

}  // namespace holt::machine
