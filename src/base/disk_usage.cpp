#include "holt/base/disk_usage.hpp"

#include <sys/stat.h>
#include <system_error>

namespace holt {
namespace fs = std::filesystem;

std::uint64_t disk_bytes(const fs::path& path) {
  constexpr std::uint64_t k_stat_block = 512;  // stat(2), whatever the file system's block is
  struct stat info{};
  return ::lstat(path.c_str(), &info) == 0 ? static_cast<std::uint64_t>(info.st_blocks) * k_stat_block : 0;
}

std::uint64_t disk_bytes_below(const fs::path& path) {
  std::uint64_t bytes = disk_bytes(path);
  std::error_code error;
  auto options = fs::directory_options::skip_permission_denied;
  for (fs::recursive_directory_iterator at(path, options, error), end; !error && at != end;
       at.increment(error)) {
    bytes += disk_bytes(at->path());
  }
  return bytes;
}

}  // namespace holt
