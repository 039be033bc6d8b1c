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
  std::string user = {};                          ///< whose rights count; empty: root
  CallOptions call = {};                          ///< default deadline: 30 s without progress
};

enum class Parents { must_exist, make };
struct FileWriteOptions {
  std::optional<std::uint32_t> mode = std::nullopt;  ///< unset: kept of a replaced file, else 0644
  Parents parents = Parents::must_exist;
  std::optional<std::uint64_t> size =
      std::nullopt;  ///< of a stream, where known: lets the guest write faster
  std::string user = {};
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

  class Impl;
  explicit FileWriter(std::unique_ptr<Impl> impl);

 private:
  std::unique_ptr<Impl> impl_;
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

enum class FollowLinks { no, yes };
struct CopyOptions {
  FollowLinks follow = FollowLinks::no;  ///< of links below the source on the host
  std::function<void(const CopyResult&)> on_progress = {};
  CallOptions call = {};  ///< default deadline: 30 s without progress
};

}  // namespace holt
