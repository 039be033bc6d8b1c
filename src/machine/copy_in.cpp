#include "machine/tree_copy.hpp"
#include "machine/tree_upload.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <dirent.h>
#include <fcntl.h>
#include <memory>
#include <sys/stat.h>
#include <unistd.h>
#include <vector>

#include <fmt/format.h>

namespace holt::machine {

using namespace protocol;

namespace {

// Deeper trees than this are loops of the host's own making; each level holds a descriptor.
constexpr std::size_t k_deepest = 256;

std::string error_text(int error_number) {
  return std::strerror(error_number);
}

/// Walks a host tree and sends it as one stream.
class TreeSender {
 public:
  TreeSender(const MachineFolder& folder, const std::string& target, const CopyOptions& options)
      : options_(options), upload_(folder, target, options), log_(upload_.log()) {}

  CopyResult send(const std::filesystem::path& source) {
    // What the caller names is followed; links below it are not, unless asked.
    Fd fd(::open(source.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    struct stat info{};
    if (!fd || ::fstat(fd.get(), &info) != 0) {
      throw system_error(errno, fmt::format("read {}", source.string()), source);
    }
    if (!S_ISREG(info.st_mode) && !S_ISDIR(info.st_mode)) {
      throw Error(ErrorCode::not_regular,
                  fmt::format("{} is no file and no folder", printable(source.string())),
                  {.subject = printable(source.string())});
    }
    if (S_ISREG(info.st_mode) && options_.mode) info.st_mode = S_IFREG | (*options_.mode & 07777);
    send_opened(std::move(fd), info, "");
    return upload_.finish();
  }

 private:
  void send_opened(Fd fd, const struct stat& info, const std::string& path) {
    if (S_ISDIR(info.st_mode)) return send_directory(std::move(fd), info, path);
    if (S_ISREG(info.st_mode)) return send_file(fd, info, path);
    log_.skipped(path, "is no file, folder or link");
  }

  void send_entry(const struct stat& info, protocol::FileType type, const std::string& path,
                  std::string link = {}) {
    bool is_file = type == protocol::FileType::regular;
    upload_.entry({.path = path,
                   .type = type,
                   .size = is_file ? static_cast<std::uint64_t>(info.st_size) : 0,
                   .mode = info.st_mode & 07777,
                   .uid = info.st_uid,
                   .gid = info.st_gid,
                   .mtime_s = info.st_mtim.tv_sec,
                   .mtime_ns = static_cast<std::uint32_t>(info.st_mtim.tv_nsec),
                   .link_target = std::move(link),
                   .holes = is_file && has_holes(info)});
  }

  static bool has_holes(const struct stat& info) {
    constexpr std::int64_t k_stat_block = 512;  // stat(2)
    return static_cast<std::int64_t>(info.st_blocks) * k_stat_block < info.st_size;
  }

  /// End of the data from `at` on; sends the hole before it where there is one. The size where the file
  /// system knows no holes.
  std::uint64_t pass_hole(const Fd& fd, std::uint64_t& at, std::uint64_t size) {
    auto found = ::lseek(fd.get(), static_cast<off_t>(at), SEEK_DATA);
    // ENXIO: nothing but a hole is left.
    auto data = found >= 0 ? std::min(static_cast<std::uint64_t>(found), size) : errno == ENXIO ? size : at;
    if (data > at) upload_.hole(data - at);
    at = data;
    auto hole = at < size ? ::lseek(fd.get(), static_cast<off_t>(at), SEEK_HOLE) : -1;
    return hole > static_cast<off_t>(at) ? std::min(static_cast<std::uint64_t>(hole), size) : size;
  }

  void send_file(const Fd& fd, const struct stat& info, const std::string& path) {
    send_entry(info, protocol::FileType::regular, path);
    auto size = static_cast<std::uint64_t>(info.st_size);
    for (std::uint64_t at = 0; at < size;) {
      auto end = has_holes(info) ? pass_hole(fd, at, size) : size;
      if (!send_bytes(fd, at, end, path)) {
        // The size has been told already: the rest is filled up, and the file named.
        std::ranges::fill(buffer_, '\0');
        for (; at < size; at += std::min<std::uint64_t>(buffer_.size(), size - at)) {
          upload_.bytes({buffer_.data(), std::min<std::uint64_t>(buffer_.size(), size - at)});
        }
      }
    }
  }

  /// False when the file has ended or cannot be read before `end`.
  bool send_bytes(const Fd& fd, std::uint64_t& at, std::uint64_t end, const std::string& path) {
    while (at < end) {
      auto n = ::pread(fd.get(), buffer_.data(), std::min<std::uint64_t>(buffer_.size(), end - at),
                       static_cast<off_t>(at));
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) {
        log_.failed(path, n < 0 ? error_text(errno)
                                : "became shorter while it was read; the rest was filled with zeroes");
        return false;
      }
      upload_.bytes({buffer_.data(), static_cast<std::size_t>(n)});
      at += static_cast<std::uint64_t>(n);
    }
    return true;
  }

  void send_directory(Fd fd, const struct stat& info, const std::string& path) {
    if (++depth_ > k_deepest) {
      --depth_;
      return log_.failed(path, "is too deep");
    }
    send_entry(info, protocol::FileType::directory, path);
    int raw = duplicate(fd.get()).release();
    std::unique_ptr<DIR, int (*)(DIR*)> dir(::fdopendir(raw), &::closedir);
    if (!dir) {
      ::close(raw);
      throw system_error(errno, fmt::format("read the folder {}", path), path);
    }
    std::vector<std::string> names;
    while (const dirent* entry = ::readdir(dir.get())) {
      std::string name = entry->d_name;
      if (name != "." && name != "..") names.push_back(std::move(name));
    }
    dir.reset();
    std::ranges::sort(names);
    for (const auto& name : names) send_child(fd, name, path.empty() ? name : path + "/" + name);
    --depth_;
  }

  void send_child(const Fd& parent, const std::string& name, const std::string& path) {
    struct stat info{};
    int look = options_.follow == FollowLinks::yes ? 0 : AT_SYMLINK_NOFOLLOW;
    if (::fstatat(parent.get(), name.c_str(), &info, look) != 0) return log_.failed(path, error_text(errno));
    if (S_ISLNK(info.st_mode)) {
      std::array<char, 4096> text;
      ssize_t n = ::readlinkat(parent.get(), name.c_str(), text.data(), text.size());
      if (n < 0) return log_.failed(path, error_text(errno));
      return send_entry(info, protocol::FileType::symlink, path, {text.data(), static_cast<std::size_t>(n)});
    }
    if (!S_ISDIR(info.st_mode) && !S_ISREG(info.st_mode))
      return log_.skipped(path, "is no file, folder or link");
    // O_NONBLOCK: something else may stand there by now, and a FIFO must not hang the copy.
    int flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | (options_.follow == FollowLinks::yes ? 0 : O_NOFOLLOW);
    Fd fd(::openat(parent.get(), name.c_str(), flags));
    if (!fd || ::fstat(fd.get(), &info) != 0) return log_.failed(path, error_text(errno));
    send_opened(std::move(fd), info, path);
  }

  const CopyOptions& options_;
  TreeUpload upload_;
  CopyLog& log_;
  std::vector<char> buffer_ = std::vector<char>(std::size_t{1} << 20);
  std::size_t depth_ = 0;
};

}  // namespace

CopyResult copy_tree_in(const MachineFolder& folder, const std::filesystem::path& source,
                        const std::string& target, const CopyOptions& options) {
  return TreeSender(folder, target, options).send(source);
}

}  // namespace holt::machine
