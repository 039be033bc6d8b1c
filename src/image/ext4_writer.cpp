#include "image/ext4_writer.hpp"

#include "holt/base/error.hpp"
#include "image/ext4_layout.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <span>
#include <sys/stat.h>
#include <unistd.h>

#include <ext2fs/ext2fs.h>
extern "C" {  // this header has no C++ guard
#include <et/com_err.h>
}
#include <fmt/format.h>

namespace holt::image {
namespace {

constexpr std::size_t k_pending_bytes = std::size_t{1} << 20;
constexpr std::uint32_t k_reserve_blocks = 2048;
constexpr std::uint32_t k_run_blocks = 32768;  ///< longest written extent, EXT_INIT_MAX_LEN
constexpr std::uint32_t k_links = 65000;       ///< EXT4_LINK_MAX
constexpr std::uint64_t k_largest_file = (std::uint64_t{1} << 32) * k_block_bytes - k_block_bytes;

/// libext2fs's words for a code of its own.
std::string error_text(errcode_t code) {
  initialize_ext2_error_table();
  return error_message(code);
}

/// What does not fit the disk that every machine of the image begins with.
Error too_large(std::uint64_t disk_bytes, std::string_view what) {
  return {
      ErrorCode::limit_exceeded,
      fmt::format("{}: the image does not fit its disk of {} MiB", what, disk_bytes >> 20),
      {.hint = "Use an image with less in it, and copy the rest into a machine with a larger --disk; in "
               "C++, PullOptions::disk_bytes and ImportSourceOptions::disk_bytes make the image's larger."}};
}

void write_at(int fd, std::string_view bytes, std::uint64_t offset) {
  while (!bytes.empty()) {
    ssize_t n = ::pwrite(fd, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) throw system_error(errno, "write the image's file system");
    bytes.remove_prefix(static_cast<std::size_t>(n));
    offset += static_cast<std::uint64_t>(n);
  }
}

}  // namespace

struct Ext4Writer::Content {
  std::uint64_t size = 0;
  std::span<const BlockRun> runs = {};
  std::string_view in_inode =
      {};  ///< at most 60 bytes instead of runs: a short link's target, a device's numbers
  std::uint16_t links = 1;
};

Ext4Writer::Ext4Writer(const std::filesystem::path& path, std::uint64_t bytes)
    : disk_bytes_(bytes), file_(::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600)) {
  if (!file_) throw system_error(errno, "make the image's file system", path.string());
  if (::ftruncate(file_.get(), static_cast<off_t>(bytes)) != 0) {
    int number = errno;
    if (number != EFBIG) throw system_error(number, "size the image's file system", path.string());
    throw Error(
        ErrorCode::storage_error,
        fmt::format("size the image's file system: a file of {} bytes is too large here", bytes),
        {.subject = path.string(), .hint = "ulimit -f, or the file system, allows only smaller ones."});
  }
  lay_out(path, bytes);
}

void Ext4Writer::check(errcode_t code, const char* action) const {
  if (code == 0) return;
  if (code == EXT2_ET_BLOCK_ALLOC_FAIL || code == EXT2_ET_INODE_ALLOC_FAIL)
    throw too_large(disk_bytes_, action);
  if (code == EXT2_ET_EA_NO_SPACE) {
    throw Error(ErrorCode::limit_exceeded,
                fmt::format("{}: more extended attributes than ext4 can hold", action));
  }
  // Only a full disk takes a part of what is written.
  if (code == EXT2_ET_SHORT_WRITE) throw system_error(ENOSPC, action);
  if (code > 0 && code < 256) throw system_error(static_cast<int>(code), action);
  throw Error(ErrorCode::storage_error, fmt::format("{}: {}", action, error_text(code)));
}

Ext4Writer::~Ext4Writer() {
  if (fs_) ext2fs_free(fs_);
}

void Ext4Writer::lay_out(const std::filesystem::path& path, std::uint64_t bytes) {
  ext2_super_block parameters = superblock_parameters(bytes);
  check(ext2fs_initialize(path.c_str(), EXT2_FLAG_64BITS, &parameters, unix_io_manager, &fs_),
        "lay out the file system");
  fs_->now = k_file_system_time;
  fs_->super->s_mkfs_time = fs_->super->s_lastcheck = static_cast<__u32>(k_file_system_time);
  // ext2fs_initialize() takes these from the machine it runs on.
  fs_->super->s_def_hash_version = EXT2_HASH_HALF_MD4;
  fs_->super->s_flags = EXT2_FLAGS_UNSIGNED_HASH;
  check(ext2fs_allocate_tables(fs_), "place the inode tables");
  for (dgrp_t group = 0; group < fs_->group_desc_count; ++group) {
    // The file is new and sparse, so the tables read as zeros: the kernel need not clear them in each
    // overlay.
    ext2fs_bg_flags_set(fs_, group, EXT2_BG_INODE_ZEROED);
    ext2fs_group_desc_csum_set(fs_, group);
  }
  for (ext2_ino_t inode = 1; inode < EXT2_FIRST_INODE(fs_->super); ++inode) {
    ext2fs_inode_alloc_stats2(fs_, inode, +1, inode == EXT2_ROOT_INO ? 1 : 0);
  }
  last_inode_ = EXT2_FIRST_INODE(fs_->super) - 1;
}

Ext4Writer::Inode Ext4Writer::next_inode() {
  // A tenth stays for the machine's user.
  if (last_inode_ >= fs_->super->s_inodes_count / 10 * 9) {
    throw too_large(disk_bytes_, fmt::format("make more than {} files", last_inode_));
  }
  return ++last_inode_;
}

std::uint64_t Ext4Writer::take_block() {
  if (reserve_.blocks == 0) {
    blk64_t start = 0;
    blk64_t length = 0;
    check(ext2fs_new_range(fs_, 0, goal_, k_reserve_blocks, nullptr, &start, &length), "place data");
    ext2fs_block_alloc_stats_range(fs_, start, static_cast<blk_t>(length), +1);
    reserve_ = {.logical = 0, .physical = start, .blocks = static_cast<std::uint32_t>(length)};
    goal_ = start + length;
  }
  --reserve_.blocks;
  return reserve_.physical++;
}

void Ext4Writer::put_block(std::uint64_t logical, std::string_view block) {
  std::uint64_t physical = take_block();
  if (!runs_.empty() && runs_.back().logical + runs_.back().blocks == logical &&
      runs_.back().physical + runs_.back().blocks == physical && runs_.back().blocks < k_run_blocks) {
    ++runs_.back().blocks;
  } else {
    runs_.push_back({.logical = logical, .physical = physical, .blocks = 1});
  }
  std::uint64_t offset = physical * k_block_bytes;
  if (offset != pending_at_ + pending_.size() || pending_.size() >= k_pending_bytes) {
    flush_pending();
    pending_at_ = offset;
  }
  pending_ += block;
  pending_.resize(offset + k_block_bytes - pending_at_);
}

void Ext4Writer::flush_pending() {
  write_at(file_.get(), pending_, pending_at_);
  pending_.clear();
}

void Ext4Writer::flush_tail() {
  if (tail_.empty()) return;
  put_block(tail_block_, tail_);
  tail_.clear();
}

void Ext4Writer::begin_file() {
  runs_.clear();
  tail_.clear();
  written_ = 0;
}

void Ext4Writer::write(std::uint64_t offset, std::string_view bytes) {
  if (offset < written_) throw Error(ErrorCode::image_invalid, "a file's pieces overlap");
  if (offset > k_largest_file - bytes.size()) {
    throw Error(ErrorCode::limit_exceeded, fmt::format("a file has more than {} bytes", k_largest_file));
  }
  written_ = offset + bytes.size();
  while (!bytes.empty()) {
    std::uint64_t block = offset / k_block_bytes;
    std::size_t inside = offset % k_block_bytes;
    if (!tail_.empty() && block != tail_block_) flush_tail();
    std::size_t length = std::min(k_block_bytes - inside, bytes.size());
    if (length == k_block_bytes) {
      put_block(block, bytes.substr(0, length));
    } else {
      tail_block_ = block;
      tail_.resize(inside);
      tail_ += bytes.substr(0, length);
      if (tail_.size() == k_block_bytes) flush_tail();
    }
    bytes.remove_prefix(length);
    offset += length;
  }
}

Ext4Writer::Inode Ext4Writer::end_file(std::uint64_t size, const Metadata& metadata) {
  if (size > k_largest_file) {
    throw Error(ErrorCode::limit_exceeded, fmt::format("a file has more than {} bytes", k_largest_file));
  }
  flush_tail();
  return add_inode(LINUX_S_IFREG, {.size = std::max(size, written_), .runs = runs_}, metadata);
}

Ext4Writer::Inode Ext4Writer::add_symlink(const std::string& target, const Metadata& metadata) {
  if (target.empty() || target.size() >= k_block_bytes) {
    throw Error(ErrorCode::image_invalid, fmt::format("a link's target has {} bytes", target.size()));
  }
  Metadata of_link = metadata;
  of_link.permissions = 0777;  // as Linux gives every link; an archive may say otherwise
  if (target.size() < k_in_inode_bytes) {
    return add_inode(LINUX_S_IFLNK, {.size = target.size(), .in_inode = target}, of_link);
  }
  begin_file();
  put_block(0, target);
  return add_inode(LINUX_S_IFLNK, {.size = target.size(), .runs = runs_}, of_link);
}

Ext4Writer::Inode Ext4Writer::add_special(EntryKind kind, std::uint32_t major, std::uint32_t minor,
                                          const Metadata& metadata) {
  if (kind == EntryKind::fifo) return add_inode(LINUX_S_IFIFO, {}, metadata);
  if (major >= 1U << 12U || minor >= 1U << 20U) {
    throw Error(ErrorCode::image_invalid, fmt::format("a device has the number {}:{}", major, minor));
  }
  std::string numbers = device_numbers(major, minor);
  std::uint32_t mode = kind == EntryKind::block_device ? LINUX_S_IFBLK : LINUX_S_IFCHR;
  return add_inode(mode, {.in_inode = numbers}, metadata);
}

Ext4Writer::Inode Ext4Writer::add_inode(std::uint32_t mode, const Content& content,
                                        const Metadata& metadata) {
  Inode inode = next_inode();
  ext2fs_inode_alloc_stats2(fs_, inode, +1, 0);
  write_inode(inode, mode, content, metadata);
  return inode;
}

void Ext4Writer::write_inode(Inode inode, std::uint32_t mode, const Content& content,
                             const Metadata& metadata) {
  ext2_inode_large raw = inode_of(mode, metadata);
  auto* small = reinterpret_cast<ext2_inode*>(&raw);
  raw.i_links_count = content.links;
  ext2fs_inode_size_set(fs_, small, static_cast<ext2_off64_t>(content.size));
  bool has_blocks = LINUX_S_ISREG(mode) || LINUX_S_ISDIR(mode) || !content.runs.empty();
  bool fits = content.runs.size() <= k_runs_in_inode;
  if (has_blocks) {
    raw.i_flags |= EXT4_EXTENTS_FL;
    std::string root = extent_root(fits ? content.runs : std::span<const BlockRun>{});
    root.copy(reinterpret_cast<char*>(raw.i_block), sizeof raw.i_block);
  } else {
    content.in_inode.copy(reinterpret_cast<char*>(raw.i_block), sizeof raw.i_block);
  }
  std::uint64_t blocks = 0;
  for (const BlockRun& run : content.runs) blocks += run.blocks;
  ext2fs_iblk_set(fs_, small, blocks);
  check(ext2fs_write_inode_full(fs_, inode, small, sizeof raw), "write an inode");
  if (!fits) insert_runs(inode, {content.runs.begin(), content.runs.end()});
  if (!metadata.xattrs.empty()) write_xattrs(inode, metadata);
}

void Ext4Writer::insert_runs(Inode inode, const std::vector<BlockRun>& runs) {
  ext2_extent_handle_t handle = nullptr;
  check(ext2fs_extent_open(fs_, inode, &handle), "open a file's extents");
  std::unique_ptr<ext2_extent_handle, decltype(&ext2fs_extent_free)> guard(handle, ext2fs_extent_free);
  for (const BlockRun& run : runs) {
    ext2fs_extent extent{.e_pblk = run.physical,
                         .e_lblk = run.logical,
                         .e_len = run.blocks,
                         .e_flags = EXT2_EXTENT_FLAGS_LEAF};
    check(ext2fs_extent_insert(handle, EXT2_EXTENT_INSERT_AFTER, &extent), "write a file's extents");
  }
  check(ext2fs_extent_fix_parents(handle), "write a file's extents");
}

void Ext4Writer::write_xattrs(Inode inode, const Metadata& metadata) {
  ext2_xattr_handle* handle = nullptr;
  check(ext2fs_xattrs_open(fs_, inode, &handle), "open extended attributes");
  struct Closer {
    void operator()(ext2_xattr_handle* open) const { ext2fs_xattrs_close(&open); }
  };
  std::unique_ptr<ext2_xattr_handle, Closer> guard(handle);
  for (const auto& [name, value] : metadata.xattrs) {
    check(ext2fs_xattr_set(handle, name.c_str(), value.data(), value.size()), "write extended attributes");
  }
}

void Ext4Writer::add_link(Inode inode) {
  if (inode >= links_.size()) links_.resize(std::size_t{inode} + 1);
  if (links_[inode] + 1U >= k_links) {
    throw Error(ErrorCode::limit_exceeded, fmt::format("a file has more than {} names", k_links));
  }
  ++links_[inode];
}

void Ext4Writer::drop_link(Inode inode) {
  if (inode < links_.size() && links_[inode] > 0) {
    --links_[inode];
    return;
  }
  collect_blocks(inode);
  freed_inodes_.push_back(inode);
}

std::uint64_t Ext4Writer::memory() const {
  return links_.capacity() * sizeof(std::uint16_t) + freed_blocks_.capacity() * sizeof(BlockRun) +
         freed_inodes_.capacity() * sizeof(Inode);
}

void Ext4Writer::collect_blocks(Inode inode) {
  ext2_inode raw{};
  check(ext2fs_read_inode(fs_, inode, &raw), "read an inode");
  auto add = [&](std::uint64_t block) {
    if (!freed_blocks_.empty() && freed_blocks_.back().physical + freed_blocks_.back().blocks == block) {
      ++freed_blocks_.back().blocks;
    } else {
      freed_blocks_.push_back({.logical = 0, .physical = block, .blocks = 1});
    }
  };
  if (blk64_t attributes = ext2fs_file_acl_block(fs_, &raw)) add(attributes);
  if (!ext2fs_inode_has_valid_blocks2(fs_, &raw)) return;
  using Add = decltype(add);
  check(ext2fs_block_iterate3(
            fs_, inode, BLOCK_FLAG_READ_ONLY, nullptr,
            [](ext2_filsys, blk64_t* block, e2_blkcnt_t, blk64_t, int, void* data) {
              (*static_cast<Add*>(data))(*block);
              return 0;
            },
            &add),
        "find a file's blocks");
}

void Ext4Writer::write_directories(Directory& directory, Inode inode, Inode parent,
                                   const std::function<void()>& step) {
  step();
  // A folder's own folders get their numbers before it is written.
  for (Node& node : directory.children) {
    if (!node.directory) continue;
    node.inode = next_inode();
    ext2fs_inode_alloc_stats2(fs_, node.inode, +1, 1);
  }
  write_directory(directory, inode, parent);
  for (Node& node : directory.children) {
    if (node.directory) write_directories(*node.directory, node.inode, inode, step);
  }
}

void Ext4Writer::write_directory(const Directory& directory, Inode inode, Inode parent) {
  begin_file();
  DirectoryBlocks blocks([&](std::string_view block) { write(written_, block); });
  blocks.add(".", inode, EntryKind::directory);
  blocks.add("..", parent, EntryKind::directory);
  std::size_t folders = 0;
  for (const Node& node : directory.children) {
    blocks.add(node.name, node.inode, node.kind);
    if (node.directory) ++folders;
  }
  blocks.finish();
  // Above the limit the count is 1, "not counted" (dir_nlink).
  auto links = static_cast<std::uint16_t>(folders + 2 > k_links ? 1 : folders + 2);
  write_inode(inode, LINUX_S_IFDIR, {.size = written_, .runs = runs_, .links = links}, directory.metadata);
}

void Ext4Writer::apply_link_counts() {
  for (Inode inode = 0; inode < links_.size(); ++inode) {
    if (links_[inode] == 0) continue;
    ext2_inode raw{};
    check(ext2fs_read_inode(fs_, inode, &raw), "read an inode");
    raw.i_links_count = static_cast<__u16>(links_[inode] + 1U);
    check(ext2fs_write_inode(fs_, inode, &raw), "write an inode");
  }
}

void Ext4Writer::apply_frees() {
  if (reserve_.blocks > 0) {
    ext2fs_block_alloc_stats_range(fs_, reserve_.physical, reserve_.blocks, -1);
    reserve_.blocks = 0;
  }
  for (const BlockRun& run : freed_blocks_) {
    ext2fs_block_alloc_stats_range(fs_, run.physical, run.blocks, -1);
  }
  for (Inode inode : freed_inodes_) {
    ext2_inode_large empty{};
    check(ext2fs_write_inode_full(fs_, inode, reinterpret_cast<ext2_inode*>(&empty), sizeof empty),
          "clear an inode");
    ext2fs_inode_alloc_stats2(fs_, inode, -1, 0);
  }
}

void Ext4Writer::punch_freed() const {
  for (const BlockRun& run : freed_blocks_) {
    // Only saves space: a host file system without holes keeps the bytes of free blocks.
    (void)::fallocate(file_.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                      static_cast<off_t>(run.physical * k_block_bytes),
                      static_cast<off_t>(std::uint64_t{run.blocks} * k_block_bytes));
  }
}

void Ext4Writer::add_system_files(const Uuid& uuid) {
  std::memcpy(fs_->super->s_uuid, uuid.data(), uuid.size());
  std::memcpy(fs_->super->s_hash_seed, uuid.data(), uuid.size());
  check(ext2fs_create_resize_inode(fs_), "make the resize inode");
  ext2fs_journal_params journal{.num_journal_blocks = k_journal_blocks, .num_fc_blocks = 0};
  check(
      ext2fs_add_journal_inode3(fs_, &journal, ~0ULL, EXT2_MKJOURNAL_LAZYINIT | EXT2_MKJOURNAL_NO_MNT_CHECK),
      "make the journal");
}

void Ext4Writer::finish(const Uuid& uuid, Directory& root, const std::function<void()>& step) {
  write_directories(root, EXT2_ROOT_INO, EXT2_ROOT_INO, step);
  flush_pending();
  apply_link_counts();
  add_system_files(uuid);
  // Behind everything that takes blocks: what is freed here is punched out of the host's file below.
  apply_frees();
  check(ext2fs_set_gdt_csum(fs_), "sum up the group descriptors");
  ext2fs_mark_super_dirty(fs_);
  ext2fs_mark_bb_dirty(fs_);
  ext2fs_mark_ib_dirty(fs_);
  check(ext2fs_close_free(&fs_), "write the file system's tables");
  punch_freed();
  if (::fchmod(file_.get(), 0444) != 0) throw system_error(errno, "protect the image's file system");
  if (::fsync(file_.get()) != 0) throw system_error(errno, "flush the image's file system");
}

}  // namespace holt::image
