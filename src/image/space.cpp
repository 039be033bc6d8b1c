#include "image/space.hpp"

#include "holt/base/disk_space.hpp"

#include <cerrno>
#include <string>
#include <sys/stat.h>

#include <fmt/format.h>

namespace holt::image {
namespace {

constexpr const char* k_hint = "holt image prune frees what nothing uses.";

Error no_room(const std::filesystem::path& folder, std::string_view what, std::string_view needs,
              std::uint64_t free) {
  return {ErrorCode::storage_full,
          fmt::format("make room for {}: it needs {} bytes, {} are free in {}", what, needs, free,
                      folder.string()),
          {.subject = folder.string(), .hint = k_hint, .retryable = true}};
}

}  // namespace

void require_space(const std::filesystem::path& folder, std::uint64_t bytes, std::string_view what) {
  auto free = free_disk_bytes(folder);
  if (!free) throw system_error(errno, "look for room on the disk", folder.string());
  if (*free < bytes) throw no_room(folder, what, std::to_string(bytes), *free);
}

Error with_space_need(const Error& full, const SpaceNeed& need) {
  constexpr std::uint64_t k_stat_block = 512;  // stat(2)
  struct stat status{};
  std::uint64_t had = ::stat(need.file.c_str(), &status) == 0
                          ? static_cast<std::uint64_t>(status.st_blocks) * k_stat_block
                          : 0;
  auto free = free_disk_bytes(need.folder);
  if (!free || *free + had >= need.bytes) {
    return {full.code(), full.what(), {.subject = full.subject(), .hint = k_hint, .retryable = true}};
  }
  return no_room(need.folder, need.what, fmt::format("at least {}", need.bytes), *free + had);
}

}  // namespace holt::image
