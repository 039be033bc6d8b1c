// Stores on file systems whose files have no holes (FAT, exFAT): there an image takes all of its size.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>

namespace holt::image {

/// What a new image gets in such a store instead of a machine's whole disk, which its guest grows to.
inline constexpr std::uint64_t k_disk_bytes_without_holes = std::uint64_t{2} << 30;

/// Whether a file's blocks are fewer than its size asks for.
bool has_holes(int fd);

/// Whether new files in a folder can have them. Makes one and removes it. Throws Error as system_error().
bool keeps_holes(const std::filesystem::path& folder);

/// The size of a new image's file system in a store: `wanted`, but no more than k_disk_bytes_without_holes
/// where it would be taken whole; that is logged once in a process. `scratch`, a folder in the store, is what
/// `probe`, keeps_holes(), is asked of. Throws Error STORAGE_FULL when not even that is free, and what the
/// probe throws. Thread-safe.
std::uint64_t disk_bytes_in(const std::filesystem::path& images, const std::filesystem::path& scratch,
                            std::uint64_t wanted,
                            const std::function<bool(const std::filesystem::path&)>& probe = keeps_holes);

}  // namespace holt::image
