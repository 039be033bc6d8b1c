// What a file system keeps about an entry beside its name and content.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace holt::image {

struct Metadata {
  std::uint32_t permissions = 0755;  ///< low 12 bits of the mode
  std::uint32_t uid = 0;
  std::uint32_t gid = 0;
  std::int64_t mtime_seconds = 0;
  std::uint32_t mtime_nanoseconds = 0;
  std::vector<std::pair<std::string, std::string>> xattrs = {};  ///< full name ("user.x"), value
};

enum class EntryKind : std::uint8_t { regular, directory, symlink, character_device, block_device, fifo };

}  // namespace holt::image
