// Reading files for the host: one file, or the files of a tree.
#pragma once

#include "guest/jobs.hpp"
#include "holt/base/fd.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <sys/stat.h>

namespace holt::guest {

/// Opens a regular file, never waiting for a FIFO or touching a device. `shown` is its path in messages.
Outcome<Fd> open_regular(int folder, const std::string& name, const std::string& shown, struct stat& status);

struct FileBytes {
  int fd = -1;
  std::uint64_t offset = 0;
  std::uint64_t size = 0;
  std::string shown;
};
struct SentBytes {
  std::uint64_t bytes = 0;
  std::optional<Failure> failure = {};  ///< why the rest could not be read
};
/// Sends `size` bytes from `offset` as output frames. Fewer when the file ends or the stream does.
SentBytes send_file_bytes(JobStream& stream, const FileBytes& file);

}  // namespace holt::guest
