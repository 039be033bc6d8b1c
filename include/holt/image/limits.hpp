// What an image may cost before it is refused. Depends on the standard library only.
#pragma once

#include <cstddef>
#include <cstdint>

namespace holt::image {

/// Budgets of one image build. All count what was unpacked, so a small archive that expands without end is
/// stopped by them. Exceeding one is LIMIT_EXCEEDED. Published in docs/reference.md.
struct Limits {
  std::uint64_t entries = 1'000'000;                       ///< members of all layers
  std::uint64_t unpacked_bytes = std::uint64_t{16} << 30;  ///< file data of all layers
  std::uint64_t file_bytes = std::uint64_t{16} << 30;      ///< apparent size of one file, holes included
  std::size_t path_bytes = 4095;                           ///< PATH_MAX without its NUL
  std::size_t path_depth = 256;                            ///< components of one path
  std::size_t symlinks_followed = 40;                      ///< in one path; as the kernel's MAXSYMLINKS
  /// Memory of the merged tree: 64 bytes an entry, 168 a folder, and the names, targets and folders'
  /// attributes themselves; with two bytes a hard link's inode, and what the window of a zstd frame has above
  /// 8 MiB. A million folders with names of 20 bytes take 190 MB.
  std::uint64_t tree_bytes = std::uint64_t{192} << 20;
  /// Steps from folder to folder, through links too, on the way to all members: the time that names may take.
  std::uint64_t walk_steps = 100'000'000;
};

/// Longest component of a path, ext4's EXT4_NAME_LEN.
inline constexpr std::size_t k_name_bytes = 255;

/// Pieces of one sparse file. GNU tar makes one for each run of data; the map is held in memory.
inline constexpr std::size_t k_sparse_pieces = 100'000;

/// Largest window of a zstd frame that a layer may ask for: what the decoder of containerd and Docker
/// (klauspost/compress) allows by default. It is memory of the reader.
inline constexpr std::size_t k_zstd_window_bytes = std::size_t{64} << 20;

}  // namespace holt::image
