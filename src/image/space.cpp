#include "image/space.hpp"

#include "holt/base/error.hpp"

#include <cerrno>
#include <sys/statvfs.h>

#include <fmt/format.h>

namespace holt::image {

void require_space(const std::filesystem::path& folder, std::uint64_t bytes, std::string_view what) {
  struct statvfs info{};
  if (::statvfs(folder.c_str(), &info) != 0)
    throw system_error(errno, "look for room on the disk", folder.string());
  std::uint64_t free = std::uint64_t{info.f_bavail} * info.f_frsize;
  if (free >= bytes) return;
  throw Error(
      ErrorCode::storage_full,
      fmt::format("make room for {}: it needs {} bytes, {} are free in {}", what, bytes, free,
                  folder.string()),
      {.subject = folder.string(), .hint = "holt image prune frees what nothing uses.", .retryable = true});
}

}  // namespace holt::image
