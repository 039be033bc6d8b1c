// What lies in a folder of a machine and below it, one entry after the other.
//
//   auto walk = machine.walk("/work", {.max_depth = 3});
//   while (auto entry = walk.next()) fmt::print("{}\n", holt::printable(entry->path));
#pragma once

#include "holt/machine/types.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

namespace holt {

struct WalkOptions {
  std::uint32_t max_depth = 0;  ///< 1: the folder's own entries; 0: no limit but the guest's, 512
  std::string user = {};        ///< whose rights count; empty: the machine's user
  CallOptions call = {};        ///< default deadline: 30 s without progress
};

/// One entry. Links are not followed.
struct WalkEntry {
  std::string path = {};  ///< below the folder, without "." and ".."; any bytes but NUL
  FileType type = FileType::unknown;
  std::uint64_t size = 0;  ///< of a regular file
  std::uint32_t mode = 0;  ///< permission bits, 07777
  std::uint32_t uid = 0;
  std::uint32_t gid = 0;
  std::int64_t mtime_ns = 0;
  std::string target = {};   ///< of a symbolic link
  std::string problem = {};  ///< why this entry could not be looked at or into; fit to be shown
};

/// Entries as the guest finds them: a folder before what is in it, in no other order. Other file systems are
/// named and not entered. Memory is bounded: the guest is at most 1 MiB ahead. Dropping it ends the walk. One
/// thread at a time.
class TreeWalk {
 public:
  TreeWalk(TreeWalk&&) noexcept;
  TreeWalk& operator=(TreeWalk&&) noexcept;
  ~TreeWalk();
  /// The next entry; nothing at the end. Throws Error, at first also NOT_FOUND, NOT_A_DIRECTORY and
  /// PERMISSION_DENIED of the folder itself; LIMIT_EXCEEDED behind 4,000,000 entries.
  std::optional<WalkEntry> next();

  /// As next(), without waiting, of a walk that Operations opened: try again when fd() polls readable.
  Tried<WalkEntry> try_next();
  int fd() const;
  /// Ends the walk; from any thread.
  void cancel();
  /// In a forked child: closes the descriptors and leaves the rest to the parent.
  void abandon() noexcept;

  class Impl;
  explicit TreeWalk(std::unique_ptr<Impl> impl);

 private:
  std::unique_ptr<Impl> impl_;
};

}  // namespace holt
