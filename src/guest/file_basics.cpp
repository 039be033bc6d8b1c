// stat, exists, list, make_dir, rename.
#include "guest/file_service.hpp"
#include "guest/file_status.hpp"
#include "guest/paths.hpp"

#include <array>
#include <cerrno>
#include <dirent.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <linux/limits.h>
#include <memory>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace holt::guest {
namespace {

using namespace protocol;

/// A page of a listing stays well below a frame's limit also with the longest names.
constexpr std::size_t k_page_bytes = std::size_t{96} << 10;
/// Bytes of an entry beside its name, generously.
constexpr std::size_t k_entry_overhead = 128;

DirectoryEntry describe_entry(int folder, const char* name) {
  DirectoryEntry entry{.name = name};
  struct stat own{};
  if (::fstatat(folder, name, &own, AT_SYMLINK_NOFOLLOW) != 0) return entry;
  entry.type = file_type(own.st_mode);
  entry.target = entry.type;
  struct stat target = own;
  if (entry.type == FileType::symlink && ::fstatat(folder, name, &target, 0) == 0) {
    entry.target = file_type(target.st_mode);
  }
  if (entry.target == FileType::regular) entry.size = static_cast<std::uint64_t>(target.st_size);
  entry.mode = target.st_mode & 07777;
  entry.mtime_s = target.st_mtim.tv_sec;
  entry.mtime_ns = static_cast<std::uint32_t>(target.st_mtim.tv_nsec);
  return entry;
}

}  // namespace

FileType file_type(mode_t mode) {
  switch (mode & S_IFMT) {
    case S_IFREG:
      return FileType::regular;
    case S_IFDIR:
      return FileType::directory;
    case S_IFLNK:
      return FileType::symlink;
    case S_IFIFO:
      return FileType::fifo;
    case S_IFSOCK:
      return FileType::socket;
    case S_IFCHR:
      return FileType::character_device;
    case S_IFBLK:
      return FileType::block_device;
    default:
      return FileType::unknown;
  }
}

FileStatus file_status(const struct stat& status) {
  constexpr std::uint64_t k_stat_block = 512;  // stat(2)
  return {.type = file_type(status.st_mode),
          .size = static_cast<std::uint64_t>(status.st_size),
          .allocated = static_cast<std::uint64_t>(status.st_blocks) * k_stat_block,
          .mode = status.st_mode & 07777,
          .uid = status.st_uid,
          .gid = status.st_gid,
          .links = status.st_nlink,
          .mtime_s = status.st_mtim.tv_sec,
          .mtime_ns = static_cast<std::uint32_t>(status.st_mtim.tv_nsec)};
}

Outcome<FileStatus> stat_path(const StatRequest& request) {
  struct stat status{};
  int flags = request.links == Links::keep ? AT_SYMLINK_NOFOLLOW : 0;
  if (::fstatat(AT_FDCWD, request.path.c_str(), &status, flags) != 0) {
    return refuse_errno(errno, "stat", request.path);
  }
  auto result = file_status(status);
  if (result.type == FileType::symlink) {
    std::array<char, PATH_MAX> target{};
    auto count = ::readlink(request.path.c_str(), target.data(), target.size());
    if (count > 0) result.link_target.assign(target.data(), static_cast<std::size_t>(count));
  }
  return result;
}

Outcome<ExistsReply> path_exists(const ExistsRequest& request) {
  struct stat status{};
  if (::stat(request.path.c_str(), &status) == 0) return ExistsReply{.exists = true};
  bool missing = errno == ENOENT || errno == ENOTDIR || errno == ELOOP || errno == EACCES;
  if (!missing) return refuse_errno(errno, "stat", request.path);
  return ExistsReply{.exists = false};
}

Outcome<ListReply> list_directory(JobStream& stream, const ListRequest& request) {
  // O_DIRECTORY first: opening a FIFO would wait for its writer.
  Fd fd(::open(request.path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NONBLOCK));
  if (!fd) return refuse_errno(errno, "list", request.path);
  std::unique_ptr<DIR, int (*)(DIR*)> folder(::fdopendir(fd.get()), ::closedir);
  if (folder == nullptr) return refuse_errno(errno, "list", request.path);
  int folder_fd = fd.release();

  ListReply reply;
  DirectoryPage page;
  std::size_t page_bytes = 0;
  auto send_page = [&] {
    bool sent = page.entries.empty() || stream.send(FrameType::entry, encode(page));
    page.entries.clear();
    page_bytes = 0;
    return sent;
  };
  errno = 0;
  while (auto* item = ::readdir(folder.get())) {
    std::string_view name = item->d_name;
    if (name == "." || name == "..") continue;
    page.entries.push_back(describe_entry(folder_fd, item->d_name));
    page_bytes += name.size() + k_entry_overhead;
    ++reply.entries;
    bool full = page.entries.size() == k_max_page || page_bytes >= k_page_bytes;
    if (full && !send_page()) return reply;
    errno = 0;
  }
  if (errno != 0) return refuse_errno(errno, "list", request.path);
  send_page();
  return reply;
}

Outcome<> make_directories(const std::string& absolute, mode_t mode) {
  struct stat status{};
  if (::stat(absolute.c_str(), &status) == 0) {
    if (S_ISDIR(status.st_mode)) return {};
    return refuse_errno(EEXIST, "make folder", absolute);
  }
  // From the root on; what exists is passed over, so that each missing part is made once.
  for (std::size_t end = 1; end != std::string::npos;) {
    end = absolute.find('/', end);
    auto part = absolute.substr(0, end);
    if (end != std::string::npos) ++end;
    if (part.empty() || part.ends_with('/')) continue;
    if (::mkdir(part.c_str(), 0777) == 0) {
      bool last = end == std::string::npos;
      ::chmod(part.c_str(), last ? mode : 0755);
      continue;
    }
    int error_number = errno;
    bool is_folder = ::stat(part.c_str(), &status) == 0 && S_ISDIR(status.st_mode);
    if (is_folder) continue;
    if (error_number == EEXIST && end != std::string::npos) error_number = ENOTDIR;
    return refuse_errno(error_number, "make folder", part);
  }
  return {};
}

Outcome<Done> make_directory(const MakeDirRequest& request) {
  auto made = make_directories(without_trailing_slashes(request.path), request.mode.value_or(0755) & 07777);
  if (!made) return std::unexpected(made.error());
  return Done{};
}

Outcome<Done> rename_path(const RenameRequest& request) {
  unsigned flags = request.write == WriteMode::create_only ? RENAME_NOREPLACE : 0;
  if (::renameat2(AT_FDCWD, request.from.c_str(), AT_FDCWD, request.to.c_str(), flags) != 0) {
    return refuse_errno(errno, "rename " + request.from + " to", request.to);
  }
  return Done{};
}

}  // namespace holt::guest
