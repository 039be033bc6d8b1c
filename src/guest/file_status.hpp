// From the kernel's view of a file to the protocol's.
#pragma once

#include "holt/protocol/messages.hpp"

#include <sys/stat.h>

namespace holt::guest {

protocol::FileType file_type(mode_t mode);
protocol::FileStatus file_status(const struct stat& status);

}  // namespace holt::guest
