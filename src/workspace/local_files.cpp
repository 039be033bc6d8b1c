#include "workspace/local_files.hpp"

#include "holt/base/fd.hpp"
#include "holt/base/files.hpp"
#include "holt/workspace/workspace.hpp"

#include <algorithm>
#include <cerrno>
#include <dirent.h>
#include <fcntl.h>
#include <filesystem>
#include <memory>
#include <sys/stat.h>
#include <unistd.h>

#include <climits>

namespace holt::local {
namespace {

constexpr std::size_t k_read_limit = std::size_t{1} << 30;
constexpr int k_link_limit = 40;  // path_resolution(7)

std::string parent_of(const std::string& path) {
  std::size_t slash = path.rfind('/');
  return slash == 0 ? "/" : path.substr(0, slash);
}

struct ::stat stat_or_throw(const std::string& path) {
  struct ::stat facts{};
  if (::stat(path.c_str(), &facts) != 0) throw PathError(errno, path);
  return facts;
}

void refuse_special(const struct ::stat& facts, const std::string& path) {
  if (S_ISDIR(facts.st_mode)) throw PathError(PathErrorKind::is_a_directory, path);
  if (!S_ISREG(facts.st_mode)) throw PathError(PathErrorKind::not_regular, path);
}

/// The type is asked before the file is opened, since opening a device may already do something, and again
/// afterwards, of what was really opened.
Fd open_regular(const std::string& path, int flags) {
  Fd fd(::open(path.c_str(), flags | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, 0666));
  if (!fd) throw PathError(errno, path);
  struct ::stat facts{};
  if (::fstat(fd.get(), &facts) != 0) throw PathError(errno, path);
  refuse_special(facts, path);
  return fd;
}

FileEntry entry_of(std::string name, std::string path, const struct ::stat* facts) {
  FileEntry entry{.name = std::move(name), .path = std::move(path)};
  if (facts == nullptr) return entry;
  entry.is_dir = S_ISDIR(facts->st_mode);
  if (!entry.is_dir) entry.size = static_cast<std::uint64_t>(facts->st_size);
  return entry;
}

}  // namespace

std::string read_bytes(const std::string& path) {
  refuse_special(stat_or_throw(path), path);
  Fd fd = open_regular(path, O_RDONLY);
  std::string bytes;
  std::string buffer(std::size_t{256} << 10, '\0');
  for (;;) {
    ssize_t n = ::read(fd.get(), buffer.data(), buffer.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) throw PathError(errno, path);
    if (n == 0) return bytes;
    bytes.append(buffer.data(), static_cast<std::size_t>(n));
    if (bytes.size() > k_read_limit) throw PathError(EFBIG, path);
  }
}

void write_bytes(const std::string& path, std::string_view data) {
  struct ::stat facts{};
  if (::stat(path.c_str(), &facts) == 0) {
    refuse_special(facts, path);
  } else {
    try {
      make_dir(parent_of(path));
    } catch (const PathError& e) {
      // The parent is a file: seen from here that is no directory.
      if (e.kind() == PathErrorKind::exists) throw PathError(PathErrorKind::not_a_directory, path);
      throw;
    }
  }
  Fd fd = open_regular(path, O_WRONLY | O_CREAT);
  while (::ftruncate(fd.get(), 0) != 0) {
    if (errno != EINTR) throw PathError(errno, path);
  }
  while (!data.empty()) {
    ssize_t n = ::write(fd.get(), data.data(), data.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) throw PathError(errno, path);
    data.remove_prefix(static_cast<std::size_t>(n));
  }
}

FileEntry stat(const std::string& path) {
  auto facts = stat_or_throw(path);
  return entry_of(path.substr(path.rfind('/') + 1), path, &facts);
}

std::vector<FileEntry> list_dir(const std::string& path) {
  std::unique_ptr<DIR, int (*)(DIR*)> directory(::opendir(path.c_str()), &::closedir);
  if (!directory) throw PathError(errno, path);
  std::vector<FileEntry> entries;
  for (;;) {
    errno = 0;
    const struct dirent* found = ::readdir(directory.get());
    if (found == nullptr) break;
    std::string name = found->d_name;
    if (name == "." || name == "..") continue;
    struct ::stat facts{};
    bool known = ::fstatat(::dirfd(directory.get()), name.c_str(), &facts, 0) == 0;
    std::string below = join_path(path, name);
    entries.push_back(entry_of(std::move(name), std::move(below), known ? &facts : nullptr));
  }
  if (errno != 0) throw PathError(errno, path);
  std::ranges::sort(entries, {}, &FileEntry::path);
  return entries;
}

void make_dir(const std::string& path) {
  struct ::stat facts{};
  if (::stat(path.c_str(), &facts) == 0) {
    if (!S_ISDIR(facts.st_mode)) throw PathError(PathErrorKind::exists, path);
    return;
  }
  if (errno != ENOENT) throw PathError(errno, path);
  try {
    if (path != "/") make_dir(parent_of(path));
  } catch (const PathError& e) {
    if (e.kind() == PathErrorKind::exists) throw PathError(PathErrorKind::not_a_directory, path);
    throw;
  }
  // EEXIST: made by another meanwhile, or a dangling link, which is no directory.
  if (::mkdir(path.c_str(), 0777) != 0 && (errno != EEXIST || ::stat(path.c_str(), &facts) != 0)) {
    throw PathError(errno, path);
  }
}

void remove(const std::string& path, const std::string& working_dir) {
  std::string real =
      path == "/" ? path : join_path(realpath(parent_of(path)), path.substr(path.rfind('/') + 1));
  if (is_below(working_dir, real) || is_below(working_dir, path)) {
    throw InvalidArgument("The working directory and what is above it cannot be removed");
  }
  struct ::stat facts{};
  if (::lstat(path.c_str(), &facts) != 0) throw PathError(errno, path);
  std::error_code error;
  std::filesystem::remove_all(path, error);
  if (error) throw PathError(error.value(), path);
}

bool exists(const std::string& path) {
  struct ::stat facts{};
  if (::stat(path.c_str(), &facts) == 0) return true;
  if (errno == EACCES || errno == ENAMETOOLONG) throw PathError(errno, path);
  return false;
}

std::string realpath(const std::string& path) {
  std::string rest = path;
  std::string done;
  int links = 0;
  while (!rest.empty()) {
    std::size_t end = std::min(rest.find('/'), rest.size());
    std::string component = rest.substr(0, end);
    rest.erase(0, std::min(end + 1, rest.size()));
    if (component.empty() || component == ".") continue;
    if (component == "..") {
      done.erase(std::min(done.rfind('/'), done.size()));
      continue;
    }
    std::string next = done + "/" + component;
    std::string target(PATH_MAX, '\0');
    ssize_t n = ::readlink(next.c_str(), target.data(), target.size());
    if (n < 0) {
      // EINVAL: no link. Missing components, and those below a file, stay as they are written.
      if (errno != EINVAL && errno != ENOENT && errno != ENOTDIR) throw PathError(errno, path);
      done = std::move(next);
      continue;
    }
    if (++links > k_link_limit) throw PathError(ELOOP, path);
    target.resize(static_cast<std::size_t>(n));
    if (target.starts_with('/')) done.clear();
    rest = target + "/" + rest;
  }
  return done.empty() ? "/" : done;
}

}  // namespace holt::local
