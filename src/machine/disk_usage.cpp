#include "machine/disk_usage.hpp"

#include <sys/stat.h>

namespace holt::machine {

std::uint64_t blocks_below(const std::filesystem::path& path) {
  std::uint64_t bytes = 0;
  auto add = [&](const std::filesystem::path& file) {
    struct stat info{};
    if (::lstat(file.c_str(), &info) == 0) bytes += static_cast<std::uint64_t>(info.st_blocks) * 512;
  };
  add(path);
  std::error_code error;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(path, error)) add(entry.path());
  return bytes;
}

}  // namespace holt::machine
