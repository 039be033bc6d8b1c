// How much of the host's disk files take: their blocks, which a sparse file has fewer of than its size says.
//
//   std::uint64_t freed = holt::disk_bytes_below(folder);
//
// All calls are thread-safe and throw nothing: what cannot be looked at, or goes away meanwhile, takes
// nothing.
#pragma once

#include <cstdint>
#include <filesystem>

namespace holt {

/// Bytes of the blocks of a file, folder or link itself.
std::uint64_t disk_bytes(const std::filesystem::path& path);
/// Those of a file, or of a folder and everything below it; links are not followed.
std::uint64_t disk_bytes_below(const std::filesystem::path& path);

}  // namespace holt
