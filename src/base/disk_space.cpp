#include "holt/base/disk_space.hpp"

#include <sys/statvfs.h>

namespace holt {
namespace {

std::optional<std::uint64_t> free_of(int result, const struct statvfs& facts) {
  if (result != 0) return std::nullopt;
  return std::uint64_t{facts.f_bavail} * facts.f_frsize;
}

}  // namespace

std::optional<std::uint64_t> free_disk_bytes(const std::filesystem::path& path) {
  struct statvfs facts{};
  int result = ::statvfs(path.c_str(), &facts);
  return free_of(result, facts);
}

std::optional<std::uint64_t> free_disk_bytes(int fd) {
  struct statvfs facts{};
  int result = ::fstatvfs(fd, &facts);
  return free_of(result, facts);
}

}  // namespace holt
