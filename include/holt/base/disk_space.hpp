// Room on the host's disks.
//
//   if (holt::free_disk_bytes(folder).value_or(0) < needed) ...
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

namespace holt {

/// Bytes that an ordinary user may still write to the file system of a path that is there, whatever a quota
/// says. Nothing where it cannot be asked; errno says why. Thread-safe. Source: statvfs(3).
std::optional<std::uint64_t> free_disk_bytes(const std::filesystem::path& path);
/// The same for the file system of an open file.
std::optional<std::uint64_t> free_disk_bytes(int fd);

}  // namespace holt
