#include "holt/base/files.hpp"

#include "holt/base/error.hpp"
#include "holt/base/ids.hpp"

#include <cerrno>
#include <fcntl.h>
#include <sys/stat.h>
#include <thread>
#include <unistd.h>

#include <fmt/format.h>

namespace holt {
namespace {

Fd open_for_reading(const std::filesystem::path& path) {
  // O_NONBLOCK: a FIFO in the file's place must not hang the caller.
  return Fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
}

std::optional<std::string> read_whole(const Fd& fd, const std::filesystem::path& path, std::size_t limit) {
  struct stat info{};
  if (::fstat(fd.get(), &info) != 0) throw system_error(errno, fmt::format("read {}", path.string()), path);
  if (!S_ISREG(info.st_mode)) {
    throw Error(ErrorCode::not_regular, fmt::format("{} is no regular file", path.string()),
                {.subject = path});
  }
  std::string content;
  char buffer[65536];
  for (;;) {
    ssize_t n = ::read(fd.get(), buffer, sizeof buffer);
    if (n < 0 && errno == EINTR) continue;
    // A file of /proc whose process has ended since it was opened.
    if (n < 0 && errno == ESRCH) return std::nullopt;
    if (n < 0) throw system_error(errno, fmt::format("read {}", path.string()), path);
    if (n == 0) return content;
    if (content.size() + static_cast<std::size_t>(n) > limit) {
      throw Error(ErrorCode::too_large, fmt::format("{} has more than {} bytes", path.string(), limit),
                  {.subject = path});
    }
    content.append(buffer, static_cast<std::size_t>(n));
  }
}

void sync_directory(const std::filesystem::path& directory) {
  Fd fd(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd || ::fsync(fd.get()) != 0)
    throw system_error(errno, fmt::format("sync {}", directory.string()), directory);
}

struct flock whole_file(short type) {
  struct flock lock{};
  lock.l_type = type;
  lock.l_whence = SEEK_SET;
  return lock;
}

Fd open_lock_file(const std::filesystem::path& path) {
  Fd fd(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!fd) throw system_error(errno, fmt::format("open the lock {}", path.string()), path);
  return fd;
}

bool try_lock(const Fd& fd, const std::filesystem::path& path) {
  struct flock lock = whole_file(F_WRLCK);
  if (::fcntl(fd.get(), F_OFD_SETLK, &lock) == 0) return true;
  if (errno == EAGAIN || errno == EACCES) return false;
  throw system_error(errno, fmt::format("lock {}", path.string()), path);
}

}  // namespace

std::string read_file(const std::filesystem::path& path, std::size_t limit) {
  Fd fd = open_for_reading(path);
  if (!fd) throw system_error(errno, fmt::format("open {}", path.string()), path);
  auto content = read_whole(fd, path, limit);
  if (!content) throw system_error(ESRCH, fmt::format("read {}", path.string()), path);
  return std::move(*content);
}

std::optional<std::string> read_file_if_exists(const std::filesystem::path& path, std::size_t limit) {
  Fd fd = open_for_reading(path);
  if (!fd && (errno == ENOENT || errno == ESRCH)) return std::nullopt;
  if (!fd) throw system_error(errno, fmt::format("open {}", path.string()), path);
  return read_whole(fd, path, limit);
}

namespace {

/// Names the file, which says what disk is full.
Error write_error(int error_number, int fd) {
  std::error_code none;
  auto path = std::filesystem::read_symlink(fmt::format("/proc/self/fd/{}", fd), none).string();
  if (!path.starts_with('/')) return system_error(error_number, "write");
  return system_error(error_number, fmt::format("write {}", path), path);
}

}  // namespace

void write_all(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    ssize_t n = ::write(fd, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) throw write_error(errno, fd);
    bytes.remove_prefix(static_cast<std::size_t>(n));
  }
}

void write_file_atomically(const std::filesystem::path& path, std::string_view content,
                           WriteOptions options) {
  auto temporary = path.parent_path() / fmt::format(".{}.{}.tmp", path.filename().string(), random_hex(8));
  Fd fd(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, options.mode));
  if (!fd) throw system_error(errno, fmt::format("write {}", path.string()), path);
  try {
    write_all(fd.get(), content);
    if (::fsync(fd.get()) != 0) throw system_error(errno, "fsync");
    if (::rename(temporary.c_str(), path.c_str()) != 0) throw system_error(errno, "rename");
  } catch (const Error& e) {
    ::unlink(temporary.c_str());
    throw Error(e.code(), fmt::format("Could not write {}: {}", path.string(), e.what()), {.subject = path});
  }
  sync_directory(path.has_parent_path() ? path.parent_path() : std::filesystem::path("."));
}

void make_private_directory(const std::filesystem::path& path) {
  if (path.empty() || ::access(path.c_str(), F_OK) == 0) return;
  make_private_directory(path.parent_path());
  if (::mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) {
    throw system_error(errno, fmt::format("make the folder {}", path.string()), path);
  }
}

void remove_tree(const std::filesystem::path& path) {
  std::error_code error;
  std::filesystem::remove_all(path, error);
  if (error && error != std::errc::no_such_file_or_directory) {
    throw system_error(error.value(), fmt::format("remove {}", path.string()), path);
  }
}

FileLock FileLock::acquire(const std::filesystem::path& path, Deadline deadline) {
  Fd fd = open_lock_file(path);
  // OFD locks have no wait with a deadline; the pause grows from 1 to 20 ms.
  for (auto pause = std::chrono::milliseconds(1); !try_lock(fd, path);
       pause = std::min(pause * 2, std::chrono::milliseconds(20))) {
    if (deadline.passed()) {
      throw Error(ErrorCode::timeout, fmt::format("Another process holds the lock {}", path.string()),
                  {.subject = path, .retryable = true});
    }
    std::this_thread::sleep_for(pause);
  }
  return FileLock(std::move(fd));
}

std::optional<FileLock> FileLock::try_acquire(const std::filesystem::path& path) {
  Fd fd = open_lock_file(path);
  if (!try_lock(fd, path)) return std::nullopt;
  return FileLock(std::move(fd));
}

std::optional<FileLock> FileLock::try_acquire_existing(const std::filesystem::path& path) {
  Fd fd(::open(path.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW));
  if (!fd) throw system_error(errno, fmt::format("open the lock {}", path.string()), path);
  if (!try_lock(fd, path)) return std::nullopt;
  return FileLock(std::move(fd));
}

std::optional<int> FileLock::holder(const std::filesystem::path& path) {
  Fd fd(::open(path.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW));
  if (!fd && errno == ENOENT) return std::nullopt;
  if (!fd) throw system_error(errno, fmt::format("open the lock {}", path.string()), path);
  struct flock lock = whole_file(F_WRLCK);
  if (::fcntl(fd.get(), F_OFD_GETLK, &lock) != 0)
    throw system_error(errno, fmt::format("ask for {}", path.string()));
  if (lock.l_type == F_UNLCK) return std::nullopt;
  return std::max(lock.l_pid, 0);
}

TempDir::TempDir(const std::filesystem::path& parent, std::string_view prefix) {
  path_ = parent / fmt::format("{}{}", prefix, random_hex(16));
  if (::mkdir(path_.c_str(), 0700) != 0) {
    auto path = std::exchange(path_, {});
    throw system_error(errno, fmt::format("make the folder {}", path.string()), path);
  }
}

TempDir::~TempDir() {
  std::error_code ignored;  // a destructor has nobody to tell
  if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
}

std::filesystem::path TempDir::release() {
  return std::exchange(path_, {});
}

}  // namespace holt
