// One new ext4 file system in a sparse file, by libext2fs. Inodes and data are written as they come, front to
// back; directories at the end, each once.
//
//   Ext4Writer fs(path, k_default_disk_bytes);
//   fs.begin_file();  fs.write(0, bytes);  auto inode = fs.end_file(size, metadata);
//   fs.finish(uuid, tree.root(), [] {});
//
// The same calls give the same bytes: times and identifiers come from the caller, never from the clock.
#pragma once

#include "holt/base/fd.hpp"
#include "image/metadata.hpp"
#include "image/tree.hpp"

#include <array>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

struct struct_ext2_filsys;

namespace holt::image {

/// Blocks in a row, in the file and on the disk.
struct BlockRun {
  std::uint64_t logical = 0;
  std::uint64_t physical = 0;
  std::uint32_t blocks = 0;
};

/// Not thread-safe. Throws Error LIMIT_EXCEEDED when the content does not fit, STORAGE_FULL when the host's
/// disk is full, IMAGE_INVALID for what ext4 cannot hold, STORAGE_ERROR otherwise.
class Ext4Writer {
 public:
  using Inode = std::uint32_t;
  using Uuid = std::array<std::uint8_t, 16>;

  Ext4Writer(const std::filesystem::path& path, std::uint64_t bytes);
  ~Ext4Writer();
  Ext4Writer(const Ext4Writer&) = delete;
  Ext4Writer& operator=(const Ext4Writer&) = delete;

  /// Starts a regular file; one is open at a time. Its data follow in rising order of offsets, holes between.
  void begin_file();
  void write(std::uint64_t offset, std::string_view bytes);
  Inode end_file(std::uint64_t size, const Metadata& metadata);

  Inode add_symlink(const std::string& target, const Metadata& metadata);
  /// A device or FIFO.
  Inode add_special(EntryKind kind, std::uint32_t major, std::uint32_t minor, const Metadata& metadata);

  /// One more name for an inode.
  void add_link(Inode inode);
  /// One name less; the last one frees the inode and its blocks.
  void drop_link(Inode inode);

  /// Bytes held for links and for what has no name any more.
  std::uint64_t memory() const;

  /// Writes the directories of the tree and the file system's own structures, flushes all to the disk and
  /// keeps it from being written to: machines share it. Calls `step` before each directory, which may throw.
  void finish(const Uuid& uuid, Directory& root, const std::function<void()>& step);

 private:
  struct Content;  ///< what an inode points to

  void lay_out(const std::filesystem::path& path, std::uint64_t bytes);
  Inode next_inode();
  void check(long code, const char* action) const;
  std::uint64_t take_block();
  void put_block(std::uint64_t logical, std::string_view block);
  void flush_tail();
  void flush_pending();
  Inode add_inode(std::uint32_t mode, const Content& content, const Metadata& metadata);
  void write_inode(Inode inode, std::uint32_t mode, const Content& content, const Metadata& metadata);
  void insert_runs(Inode inode, const std::vector<BlockRun>& runs);
  void write_xattrs(Inode inode, const Metadata& metadata);
  void collect_blocks(Inode inode);
  void write_directories(Directory& directory, Inode inode, Inode parent, const std::function<void()>& step);
  void write_directory(const Directory& directory, Inode inode, Inode parent);
  void apply_link_counts();
  void apply_frees();
  void punch_freed() const;
  void add_system_files(const Uuid& uuid);

  std::uint64_t disk_bytes_;
  Fd file_;  ///< data blocks go here directly; libext2fs writes everything else through its own descriptor
  struct_ext2_filsys* fs_ = nullptr;
  Inode last_inode_ = 0;
  BlockRun reserve_;        ///< blocks marked as used and not given out yet
  std::uint64_t goal_ = 0;  ///< where the next reserve is looked for

  std::vector<BlockRun> runs_;  ///< of the file being written
  std::uint64_t written_ = 0;   ///< end of what that file has got so far
  std::uint64_t tail_block_ = 0;
  std::string tail_;  ///< its last block, not full yet

  std::uint64_t pending_at_ = 0;
  std::string pending_;  ///< blocks in a row that wait for one large write

  std::vector<std::uint16_t> links_;  ///< by inode: names beside the first
  /// Blocks and inodes without a name. They become free at the end: libext2fs may hold old blocks in its
  /// cache, which must not be written over new data.
  std::vector<BlockRun> freed_blocks_;
  std::vector<Inode> freed_inodes_;
};

}  // namespace holt::image
