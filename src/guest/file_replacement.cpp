#include "guest/file_replacement.hpp"

#include "guest/sha256.hpp"

#include <array>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <ctime>
#include <fcntl.h>
#include <functional>
#include <mutex>
#include <sys/xattr.h>
#include <unistd.h>

namespace holt::guest {
namespace {

constexpr std::uint32_t k_new_mode = 0644;
constexpr std::size_t k_max_xattr = std::size_t{64} << 10;
constexpr int k_name_attempts = 8;

/// Unlikely to be taken; who makes it asks for it exclusively and tries again.
std::string temporary_name() {
  static std::atomic<unsigned> counter{0};
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  return ".holt-" + std::to_string(now.tv_nsec) + "-" + std::to_string(counter++) + ".tmp";
}

/// Writers of one name wait for each other here, so that a look at a file and its replacement are one step.
/// Different names share a lock now and then, which does no harm.
std::mutex& lock_of(int folder, const std::string& name) {
  static std::array<std::mutex, 64> locks;
  struct stat status{};
  ::fstat(folder, &status);
  auto key = std::hash<std::string>{}(name) ^ (status.st_ino * 31) ^ status.st_dev;
  return locks[key % locks.size()];
}

std::string path_of(int fd) {
  return "/proc/self/fd/" + std::to_string(fd);
}

}  // namespace

Outcome<std::unique_ptr<FileReplacement>> FileReplacement::begin(int folder, std::string name,
                                                                 std::string shown,
                                                                 const ReplacementOptions& options) {
  std::unique_ptr<FileReplacement> file(
      new FileReplacement(folder, std::move(name), std::move(shown), options));
  if (auto good = file->look_at_target(); !good) return std::unexpected(good.error());
  if (auto opened = file->open_new(); !opened) return std::unexpected(opened.error());
  file->writer_.emplace(file->fd_.get(), file->shown_);
  if (options.size) {
    if (auto room = file->writer_->allocate(*options.size); !room) return std::unexpected(room.error());
  }
  return file;
}

FileReplacement::~FileReplacement() {
  if (!temporary_.empty()) ::unlinkat(folder_, temporary_.c_str(), 0);
}

Outcome<> FileReplacement::look_at_target() {
  struct stat status{};
  if (::fstatat(folder_, name_.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0) {
    if (errno == ENOENT) return {};
    return refuse_errno(errno, "write", shown_);
  }
  if (S_ISDIR(status.st_mode)) return refuse_errno(EISDIR, "write", shown_);
  if (options_.write == protocol::WriteMode::create_only) return refuse_errno(EEXIST, "write", shown_);
  bool replaceable = S_ISREG(status.st_mode) || (options_.over_links && S_ISLNK(status.st_mode));
  if (!replaceable) return refuse(ErrorCode::not_regular, "not a regular file: " + shown_, shown_);
  // The rename would need rights on the folder only; the file's own count as well, as when it were opened.
  if (S_ISREG(status.st_mode) && ::faccessat(folder_, name_.c_str(), W_OK, AT_EACCESS) != 0) {
    return refuse_errno(errno, "write", shown_);
  }
  replaced_ = status;
  return {};
}

Outcome<> FileReplacement::open_new() {
  if (options_.new_in_place && !replaced_) {
    fd_.reset(::openat(folder_, name_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
    if (!fd_) return refuse_errno(errno, "write", shown_);
    temporary_ = name_;
    return {};
  }
  // A file without a name is gone by itself when this program or the machine dies.
  fd_.reset(::openat(folder_, ".", O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600));
  unnamed_ = static_cast<bool>(fd_);
  if (unnamed_) return {};
  if (errno != EOPNOTSUPP && errno != EISDIR && errno != EINVAL) return refuse_errno(errno, "write", shown_);
  for (int i = 0; i < k_name_attempts && !fd_; ++i) {
    auto name = temporary_name();
    fd_.reset(::openat(folder_, name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
    if (fd_) temporary_ = std::move(name);
    if (!fd_ && errno != EEXIST) break;
  }
  if (!fd_) return refuse_errno(errno, "write", shown_);
  return {};
}

void FileReplacement::copy_extended_attributes() {
  auto old = path_of(folder_) + "/" + name_;
  std::string names(k_max_xattr, '\0');
  auto size = ::llistxattr(old.c_str(), names.data(), names.size());
  if (size <= 0) return;
  std::string value(k_max_xattr, '\0');
  for (const char* name = names.data(); name < names.data() + size;
       name += std::string_view(name).size() + 1) {
    auto length = ::lgetxattr(old.c_str(), name, value.data(), value.size());
    if (length >= 0) ::fsetxattr(fd_.get(), name, value.data(), static_cast<std::size_t>(length), 0);
  }
}

Outcome<> FileReplacement::set_owner() {
  constexpr auto k_same = static_cast<uid_t>(-1);
  std::pair<uid_t, gid_t> owner(k_same, k_same);
  if (keeps_old()) owner = {replaced_->st_uid, replaced_->st_gid};
  if (options_.owner && options_.owner->first != k_same) owner.first = options_.owner->first;
  if (options_.owner && options_.owner->second != k_same) owner.second = options_.owner->second;
  if (owner.first == ::geteuid()) owner.first = k_same;
  if (owner.second == ::getegid()) owner.second = k_same;
  if (owner.first == k_same && owner.second == k_same) return {};
  // Who is not root may not give a file away. To keep an owner is then no promise, as with every editor.
  if (::fchown(fd_.get(), owner.first, owner.second) == 0 || !options_.owner) return {};
  return refuse_errno(errno, "change the owner of", shown_);
}

Outcome<> FileReplacement::set_attributes() {
  bool keeps = keeps_old();
  if (auto set = set_owner(); !set) return set;
  if (keeps) copy_extended_attributes();
  auto mode = options_.mode.value_or(keeps ? replaced_->st_mode : k_new_mode) & 07777;
  if (::fchmod(fd_.get(), mode) != 0) return refuse_errno(errno, "set the mode of", shown_);
  if (options_.mtime) {
    timespec times[2] = {{.tv_sec = 0, .tv_nsec = UTIME_OMIT}, *options_.mtime};
    ::futimens(fd_.get(), times);
  }
  return {};
}

Outcome<> FileReplacement::rename_over() {
  for (int i = 0; i < k_name_attempts && unnamed_; ++i) {
    auto name = temporary_name();
    if (::linkat(AT_FDCWD, path_of(fd_.get()).c_str(), folder_, name.c_str(), AT_SYMLINK_FOLLOW) == 0) {
      temporary_ = std::move(name);
      unnamed_ = false;
    } else if (errno != EEXIST) {
      break;
    }
  }
  if (unnamed_ || ::renameat(folder_, temporary_.c_str(), folder_, name_.c_str()) != 0) {
    return refuse_errno(errno, "write", shown_);
  }
  temporary_.clear();
  return {};
}

Outcome<> FileReplacement::put_in_place() {
  if (temporary_ == name_) {
    temporary_.clear();
    return {};
  }
  if (replaced_) return rename_over();
  auto source = unnamed_ ? path_of(fd_.get()) : path_of(folder_) + "/" + temporary_;
  int flags = unnamed_ ? AT_SYMLINK_FOLLOW : 0;
  if (::linkat(AT_FDCWD, source.c_str(), folder_, name_.c_str(), flags) == 0) return {};
  // Somebody made the file meanwhile.
  if (errno == EEXIST && options_.write == protocol::WriteMode::replace) return rename_over();
  return refuse_errno(errno, "write", shown_);
}

Outcome<> FileReplacement::check_content() const {
  if (options_.expected_sha256.empty()) return {};
  Fd fd(::openat(folder_, name_.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  auto found = fd ? sha256_of_file(fd.get()) : std::nullopt;
  if (found == options_.expected_sha256) return {};
  return refuse(ErrorCode::conflict, "the file has another content than expected: " + shown_, shown_);
}

Outcome<> FileReplacement::commit() {
  if (auto flushed = writer_->finish(); !flushed) return flushed;
  if (auto set = set_attributes(); !set) return set;
  if (options_.durable && ::fsync(fd_.get()) != 0) return refuse_errno(errno, "write", shown_);
  std::lock_guard lock(lock_of(folder_, name_));
  if (auto same = check_content(); !same) return same;
  if (auto placed = put_in_place(); !placed) return placed;
  if (options_.durable && ::fsync(folder_) != 0) return refuse_errno(errno, "write", shown_);
  return {};
}

}  // namespace holt::guest
