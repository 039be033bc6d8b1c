// The members of a foreign tar as the items of a tree. Names are checked here; the guest resolves them below
// its target and follows no link.
#pragma once

#include "holt/machine/files.hpp"
#include "machine/copy_log.hpp"
#include "machine/tree_upload.hpp"

namespace holt::machine {

/// Reads a tar to its end. What is not copied goes into the log. Throws Error IMAGE_INVALID for a damaged
/// tar, LIMIT_EXCEEDED, and what input and target throw.
void send_tar(const TarInput& tar, TreeTarget& target, CopyLog& log);

}  // namespace holt::machine
