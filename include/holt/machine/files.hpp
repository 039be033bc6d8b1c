// Files of a machine, as streams and trees. Paths are absolute and resolved inside the machine.
//
//   auto writer = machine.open_write("/data/big.bin", {.size = 64 << 20});
//   while (...) writer.write(piece);
//   writer.finish();                        // only now the file stands under its name, whole
#pragma once

#include "holt/machine/types.hpp"

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace holt {

struct ReadOptions {
  std::uint64_t offset = 0;
  std::optional<std::uint64_t> length = std::nullopt;  ///< at most so many bytes from offset on
  std::uint64_t limit = std::uint64_t{64} << 20;  ///< read_file throws TOO_LARGE above; streams have no limit
  std::string user = {};                          ///< whose rights count; empty: the machine's user
  CallOptions call = {};                          ///< default deadline: 30 s without progress
};

enum class Parents { must_exist, make };
enum class Existing {
  replace,
  refuse,  ///< CONFLICT when something is there
};
enum class Durability {
  at_stop,  ///< on the disk within seconds, and in any case before the machine has stopped
  now,      ///< on the machine's disk before the call returns: survives a kill of the machine
};
struct FileWriteOptions {
  std::optional<std::uint32_t> mode = std::nullopt;  ///< unset: kept of a replaced file, else 0644
  Parents parents = Parents::must_exist;
  std::optional<std::uint64_t> size =
      std::nullopt;  ///< of a stream, where known: lets the guest write faster
  Existing existing = Existing::replace;
  /// CONFLICT unless the file there has this content: 64 lower-case hex digits. No other write through holt
  /// comes between the look and the replacement; a program of the guest may.
  std::optional<std::string> expected_sha256 = std::nullopt;
  std::string owner = {};  ///< "user" or "user:group", names of the machine or numbers; empty: of a replaced
                           ///< file, else `user`
  std::optional<std::int64_t> mtime_ns = std::nullopt;  ///< since 1970; unset: now
  Durability durability = Durability::at_stop;
  std::string user = {};  ///< whose rights count; empty: the machine's user
  CallOptions call = {};  ///< default deadline: 30 s without progress
};

/// Reads one guest file piece by piece.
class FileReader {
 public:
  FileReader(FileReader&&) noexcept;
  FileReader& operator=(FileReader&&) noexcept;
  ~FileReader();
  const FileStat& stat() const;
  /// The next piece, at most 256 KiB; nothing at the end. Throws Error, also when the file turned out shorter
  /// or longer than announced (GUEST_PROTOCOL).
  std::optional<std::string> next();

  /// As next(), without waiting, of a reader that Operations opened: try again when fd() polls readable.
  Tried<std::string> try_next();
  int fd() const;
  /// Ends the reading; from any thread.
  void cancel();
  /// In a forked child: closes the descriptors and leaves the rest to the parent.
  void abandon() noexcept;

  class Impl;
  explicit FileReader(std::unique_ptr<Impl> impl);

 private:
  std::unique_ptr<Impl> impl_;
};

/// Writes one guest file piece by piece. Without finish() the guest's old file stays as it was.
class FileWriter {
 public:
  FileWriter(FileWriter&&) noexcept;
  FileWriter& operator=(FileWriter&&) noexcept;
  ~FileWriter();
  /// Waits while the guest is busy.
  void write(std::string_view bytes);
  /// Puts the file in its place. OUTCOME_UNKNOWN when the answer got lost.
  void finish();

  /// As write() and finish(), without waiting, of a writer that Operations opened. try_write() says how many
  /// bytes it took; 0: again when write_fd() polls readable. try_finish() is false until the file stands:
  /// again when finish_fd() polls readable.
  std::size_t try_write(std::string_view bytes);
  bool try_finish();
  int write_fd() const;
  int finish_fd() const;
  /// Drops what was written; from any thread.
  void cancel();
  /// In a forked child: closes the descriptors and leaves the rest to the parent.
  void abandon() noexcept;

  class Impl;
  explicit FileWriter(std::unique_ptr<Impl> impl);

 private:
  std::unique_ptr<Impl> impl_;
};

/// What to change of a file; what is unset stays.
struct FileAttributes {
  std::optional<std::uint32_t> mode = std::nullopt;     ///< 07777
  std::string owner = {};                               ///< "user" or "user:group", names or numbers
  std::optional<std::int64_t> mtime_ns = std::nullopt;  ///< since 1970
};
enum class FollowLinks { no, yes };
struct AttributeOptions {
  FollowLinks follow = FollowLinks::yes;  ///< no: owner and time of a link itself
  std::string user = {};                  ///< whose rights count; empty: the machine's user
  CallOptions call = {};                  ///< default deadline: 30 s
};

/// An entry of a tree that was not copied. `path` is below the source and fit to be shown.
struct CopyProblem {
  enum class Kind {
    skipped,  ///< not copied by rule: FIFOs, sockets, devices
    failed,   ///< could not be read or written
  };
  Kind kind = Kind::failed;
  std::string path = {};
  std::string message = {};
};

/// What a copy of a tree did.
struct CopyResult {
  std::uint64_t files = 0;                 ///< files, folders and links
  std::uint64_t bytes = 0;                 ///< file content
  std::uint64_t skipped = 0;               ///< entries of kind skipped
  std::uint64_t failed = 0;                ///< entries of kind failed; the rest was copied all the same
  std::vector<CopyProblem> problems = {};  ///< the first 100 of both
};

enum class Owners {
  of_user,  ///< files belong to who writes them
  kept,  ///< user and group ids travel, where the writer is root: in the guest by default, on the host seldom
};
/// Content, permissions, times of modification and symbolic links travel always; holes stay holes. Hard links
/// become files of their own and extended attributes stay behind.
struct CopyOptions {
  FollowLinks follow = FollowLinks::no;  ///< of links below the source on the host
  Owners owners = Owners::of_user;
  std::string owner = {};  ///< into the machine, of everything: "user" or "user:group", names or numbers
  std::optional<std::uint32_t> mode = std::nullopt;  ///< of a single file
  std::string user = {};                             ///< whose rights count; empty: the machine's user
  std::function<void(const CopyResult&)> on_progress = {};
  CallOptions call = {};  ///< default deadline: 30 s without progress
};

/// The next piece of a tar, empty at its end; good until the next call.
using TarInput = std::function<std::string_view()>;
/// Takes a piece of a tar.
using TarOutput = std::function<void(std::string_view)>;

}  // namespace holt
