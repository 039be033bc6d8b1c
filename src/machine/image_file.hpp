// The read-only file below a machine's disk.
#pragma once

#include "holt/machine/host_config.hpp"
#include "holt/machine/types.hpp"
#include "machine/record.hpp"

namespace holt::machine {

/// Builds the image of a machine again where its file is gone and its layers are here: the same bytes. Throws
/// Error NOT_FOUND that says what brings it back, and what image::pull() throws.
void require_image_file(const MachineRecord& record, const CallOptions& call, const HostConfig& host);

}  // namespace holt::machine
