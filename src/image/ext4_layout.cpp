#include "image/ext4_layout.hpp"

#include <algorithm>
#include <cstring>

#include <ext2fs/ext2fs.h>
#include <ext2fs/ext3_extents.h>

namespace holt::image {
namespace {

/// One inode for 8 KiB: an image at the published limit of entries leaves most of a 20 GiB disk's inodes to
/// its user.
constexpr std::uint64_t k_bytes_per_inode = 8192;

/// Blocks kept for more group descriptors, 16 GiB each: a machine's disk may grow to 2 TiB while it is
/// mounted. Each one costs 4 KiB of every image.
constexpr __u16 k_growth_blocks = 128;

/// Seconds and nanoseconds as ext4 splits them: 32 bits, and 2 bits of epoch below the nanoseconds.
struct SplitTime {
  std::uint32_t seconds;
  std::uint32_t extra;
};

SplitTime split_time(std::int64_t seconds, std::uint32_t nanoseconds) {
  constexpr std::int64_t k_first = -(std::int64_t{1} << 31U);
  constexpr std::int64_t k_last = (std::int64_t{1} << 34U) - (std::int64_t{1} << 31U) - 1;
  std::int64_t clamped = std::clamp(seconds, k_first, k_last);
  auto low = static_cast<std::uint32_t>(clamped);
  std::int64_t above = clamped - static_cast<std::int32_t>(low);
  auto epoch = static_cast<std::uint32_t>(above >> 32U) & 3U;
  return {low, (nanoseconds << 2U) | epoch};
}

std::uint8_t file_type(EntryKind kind) {
  switch (kind) {
    case EntryKind::regular:
      return EXT2_FT_REG_FILE;
    case EntryKind::directory:
      return EXT2_FT_DIR;
    case EntryKind::symlink:
      return EXT2_FT_SYMLINK;
    case EntryKind::character_device:
      return EXT2_FT_CHRDEV;
    case EntryKind::block_device:
      return EXT2_FT_BLKDEV;
    case EntryKind::fifo:
      return EXT2_FT_FIFO;
  }
  return EXT2_FT_UNKNOWN;
}

template <class T>
void append(std::string& out, T value) {
  out.append(reinterpret_cast<const char*>(&value), sizeof value);
}

}  // namespace

ext2_super_block superblock_parameters(std::uint64_t bytes) {
  ext2_super_block super{};
  super.s_rev_level = EXT2_DYNAMIC_REV;
  super.s_log_block_size = super.s_log_cluster_size = 2;
  super.s_inode_size = 256;
  super.s_min_extra_isize = super.s_want_extra_isize = sizeof(ext2_inode_large) - EXT2_GOOD_OLD_INODE_SIZE;
  super.s_blocks_count = static_cast<__u32>(bytes / k_block_bytes);
  super.s_inodes_count = static_cast<__u32>(std::max<std::uint64_t>(bytes / k_bytes_per_inode, 4096));
  super.s_log_groups_per_flex = 4;
  super.s_reserved_gdt_blocks = k_growth_blocks;
  super.s_feature_compat =
      EXT2_FEATURE_COMPAT_EXT_ATTR | EXT2_FEATURE_COMPAT_DIR_INDEX | EXT2_FEATURE_COMPAT_RESIZE_INODE;
  super.s_feature_incompat =
      EXT2_FEATURE_INCOMPAT_FILETYPE | EXT3_FEATURE_INCOMPAT_EXTENTS | EXT4_FEATURE_INCOMPAT_FLEX_BG;
  // Group checksums only: they let unused inode tables stay holes. Checksums of all metadata would be
  // computed by every guest, for a disk that lies in a file of the host.
  super.s_feature_ro_compat = EXT2_FEATURE_RO_COMPAT_SPARSE_SUPER | EXT2_FEATURE_RO_COMPAT_LARGE_FILE |
                              EXT4_FEATURE_RO_COMPAT_HUGE_FILE | EXT4_FEATURE_RO_COMPAT_GDT_CSUM |
                              EXT4_FEATURE_RO_COMPAT_DIR_NLINK | EXT4_FEATURE_RO_COMPAT_EXTRA_ISIZE;
  super.s_default_mount_opts = EXT2_DEFM_XATTR_USER | EXT2_DEFM_ACL;
  return super;
}

ext2_inode_large inode_of(std::uint32_t type, const Metadata& metadata) {
  ext2_inode_large inode{};
  inode.i_mode = static_cast<__u16>(type | metadata.permissions);
  inode.i_uid = static_cast<__u16>(metadata.uid);
  inode.osd2.linux2.l_i_uid_high = static_cast<__u16>(metadata.uid >> 16U);
  inode.i_gid = static_cast<__u16>(metadata.gid);
  inode.osd2.linux2.l_i_gid_high = static_cast<__u16>(metadata.gid >> 16U);
  SplitTime time = split_time(metadata.mtime_seconds, metadata.mtime_nanoseconds);
  inode.i_extra_isize = sizeof(ext2_inode_large) - EXT2_GOOD_OLD_INODE_SIZE;
  inode.i_mtime = inode.i_ctime = inode.i_atime = inode.i_crtime = time.seconds;
  inode.i_mtime_extra = inode.i_ctime_extra = inode.i_atime_extra = inode.i_crtime_extra = time.extra;
  return inode;
}

std::string extent_root(std::span<const BlockRun> runs) {
  std::string root;
  append(root, ext3_extent_header{.eh_magic = EXT3_EXT_MAGIC,
                                  .eh_entries = static_cast<__u16>(runs.size()),
                                  .eh_max = k_runs_in_inode,
                                  .eh_depth = 0,
                                  .eh_generation = 0});
  for (const BlockRun& run : runs) {
    append(root, ext3_extent{.ee_block = static_cast<__u32>(run.logical),
                             .ee_len = static_cast<__u16>(run.blocks),
                             .ee_start_hi = static_cast<__u16>(run.physical >> 32U),
                             .ee_start = static_cast<__u32>(run.physical)});
  }
  return root;
}

std::string device_numbers(std::uint32_t major, std::uint32_t minor) {
  // Old 8:8 form in the first word where it fits, else the 12:20 form in the second.
  bool old_form = major < 256 && minor < 256;
  std::string numbers;
  append(numbers, old_form ? (major << 8U) | minor : 0U);
  append(numbers, old_form ? 0U : (minor & 0xffU) | (major << 8U) | ((minor & ~0xffU) << 12U));
  return numbers;
}

void DirectoryBlocks::add(std::string_view name, std::uint32_t inode, EntryKind kind) {
  std::size_t length = (8 + name.size() + 3) / 4 * 4;
  if (block_.size() + length > k_block_bytes) finish();
  last_ = block_.size();
  append(block_, inode);
  append(block_, static_cast<std::uint16_t>(length));
  append(block_, static_cast<std::uint8_t>(name.size()));
  append(block_, file_type(kind));
  block_ += name;
  block_.resize(last_ + length);
}

void DirectoryBlocks::finish() {
  // The last entry of a block reaches to its end.
  auto length = static_cast<std::uint16_t>(k_block_bytes - last_);
  std::memcpy(block_.data() + last_ + 4, &length, sizeof length);
  block_.resize(k_block_bytes);
  sink_(block_);
  block_.clear();
}

}  // namespace holt::image
