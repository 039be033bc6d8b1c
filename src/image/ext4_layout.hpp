// ext4's structures as plain data: what a superblock asks for, an inode, an extent root, directory blocks.
// Source: Linux, Documentation/filesystems/ext4.
#pragma once

#include "image/ext4_writer.hpp"

#include <cstdint>
#include <ctime>
#include <functional>
#include <span>
#include <string>
#include <string_view>

#include <ext2fs/ext2_fs.h>

namespace holt::image {

inline constexpr std::size_t k_block_bytes = 4096;
inline constexpr std::size_t k_in_inode_bytes = 60;  ///< i_block
inline constexpr std::size_t k_runs_in_inode = 4;
inline constexpr std::uint32_t k_journal_blocks = 4096;  ///< 16 MiB; mke2fs would take 128 MiB at this size

/// The time in every structure that no archive gives one: 2020-01-01. Not the clock, so that one image is
/// always the same bytes; not 0, which libext2fs replaces by the clock; not the archive's, which e2fsck calls
/// wrong when it lies ahead.
inline constexpr std::time_t k_file_system_time = 1577836800;

/// What ext2fs_initialize() is to make: features and counts for a file system of `bytes`.
ext2_super_block superblock_parameters(std::uint64_t bytes);

/// An inode with mode (type bits | permissions), owner and times.
ext2_inode_large inode_of(std::uint32_t type, const Metadata& metadata);

/// i_block with an extent header and at most k_runs_in_inode extents.
std::string extent_root(std::span<const BlockRun> runs);

/// i_block of a device.
std::string device_numbers(std::uint32_t major, std::uint32_t minor);

/// Packs names into directory blocks, in the order they are added, and hands on each block when it is full.
class DirectoryBlocks {
 public:
  using Sink = std::function<void(std::string_view block)>;
  explicit DirectoryBlocks(Sink sink) : sink_(std::move(sink)) {}
  void add(std::string_view name, std::uint32_t inode, EntryKind kind);
  void finish();

 private:
  Sink sink_;
  std::string block_;
  std::size_t last_ = 0;  ///< where the last entry begins
};

}  // namespace holt::image
