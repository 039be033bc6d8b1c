// Files of the host, the safe way: whole writes, locks, temporary folders.
//
//   holt::write_file_atomically(dir / "machine.json", text, {.mode = 0600});
//   holt::FileLock lock = holt::FileLock::acquire(dir / "lock", holt::Deadline::after(5s));
//
// All calls throw Error (codes as system_error()); all are thread-safe.
#pragma once

#include "holt/base/deadline.hpp"
#include "holt/base/fd.hpp"

#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

namespace holt {

/// The content of a regular file of at most `limit` bytes. Throws TOO_LARGE above, NOT_REGULAR for anything
/// else.
std::string read_file(const std::filesystem::path& path, std::size_t limit);
/// As read_file, nothing when there is no such file, or when it is of a process that has ended (proc(5)).
std::optional<std::string> read_file_if_exists(const std::filesystem::path& path, std::size_t limit);

struct WriteOptions {
  unsigned mode = 0600;
};
/// Replaces the file whole: temporary file beside it, fsync, rename, fsync of the folder. After a failure the
/// old content stands and no temporary file is left.
void write_file_atomically(const std::filesystem::path& path, std::string_view content,
                           WriteOptions options = {});

/// Writes all bytes, retrying short writes and EINTR. Throws Error.
void write_all(int fd, std::string_view bytes);

/// Makes a folder with its parents; a new one gets mode 0700. Quiet when it is there.
void make_private_directory(const std::filesystem::path& path);

/// Removes a tree without following links. Quiet when it is gone.
void remove_tree(const std::filesystem::path& path);

/// An exclusive lock on a file (OFD lock: also between threads), given back at the end of life. The file
/// stays.
class FileLock {
 public:
  /// Waits until the lock is free; throws Error TIMEOUT at the deadline. Makes the file (0600) when it is
  /// missing.
  static FileLock acquire(const std::filesystem::path& path, Deadline deadline);
  /// Nothing when another holds it.
  static std::optional<FileLock> try_acquire(const std::filesystem::path& path);
  /// The same of a file that is there; throws Error NOT_FOUND instead of making one.
  static std::optional<FileLock> try_acquire_existing(const std::filesystem::path& path);
  /// Pid of the process that holds the lock, nothing when it is free. 0 when the kernel does not tell.
  static std::optional<int> holder(const std::filesystem::path& path);
  /// The locked descriptor, to hand it to a child.
  int fd() const { return fd_.get(); }

 private:
  explicit FileLock(Fd fd) : fd_(std::move(fd)) {}
  Fd fd_;
};

/// A new folder of mode 0700 below `parent`, removed with all in it at the end of life.
class TempDir {
 public:
  explicit TempDir(const std::filesystem::path& parent = std::filesystem::temp_directory_path(),
                   std::string_view prefix = "holt-");
  ~TempDir();
  TempDir(TempDir&& other) noexcept : path_(std::move(other.path_)) { other.path_.clear(); }
  TempDir& operator=(TempDir&&) = delete;
  TempDir(const TempDir&) = delete;
  const std::filesystem::path& path() const { return path_; }
  /// Keeps the folder.
  std::filesystem::path release();

 private:
  std::filesystem::path path_;
};

}  // namespace holt
