#include "guest/file_service.hpp"
#include "guest/file_status.hpp"
#include "guest/paths.hpp"
#include "guest/reading.hpp"
#include "guest/tree.hpp"

#include <array>
#include <cerrno>
#include <dirent.h>
#include <fcntl.h>
#include <linux/limits.h>
#include <memory>
#include <sys/stat.h>
#include <unistd.h>

namespace holt::guest {
namespace {

using namespace protocol;

/// One descriptor a level is open.
constexpr std::uint32_t k_max_depth = 512;
/// A page stays well below a frame's limit also with the longest paths.
constexpr std::size_t k_page_bytes = std::size_t{96} << 10;
/// Bytes of an entry beside its path, generously.
constexpr std::size_t k_entry_overhead = 200;

class TreeSender {
 public:
  TreeSender(JobStream& stream, const TreeOutRequest& request) : stream_(stream), request_(request) {}

  Outcome<TreeReply> run() {
    auto path = without_trailing_slashes(request_.path);
    struct stat status{};
    int flags = request_.links == Links::keep ? AT_SYMLINK_NOFOLLOW : 0;
    if (::fstatat(AT_FDCWD, path.c_str(), &status, flags) != 0) return refuse_errno(errno, "read", path);
    device_ = status.st_dev;
    shown_ = path == "/" ? "" : path;
    send_item(AT_FDCWD, path, "", status, 0);
    send_page();
    return reply_;
  }

 private:
  std::string shown(const std::string& relative) const {
    return relative.empty() ? shown_ : shown_ + "/" + relative;
  }

  void report(const std::string& relative, const struct stat& status, int error_number,
              std::string_view problem = {}) {
    auto entry = make_entry(relative, status);
    entry.size = 0;
    entry.failed = true;
    entry.problem = problem.empty() ? error_text(error_number) : problem;
    send_entry(entry);
    add_problem(reply_, relative, error_number, entry.problem);
  }

  static TreeEntry make_entry(const std::string& relative, const struct stat& status) {
    return {.path = relative,
            .type = file_type(status.st_mode),
            .size = S_ISREG(status.st_mode) ? static_cast<std::uint64_t>(status.st_size) : 0,
            .mode = status.st_mode & 07777,
            .uid = status.st_uid,
            .gid = status.st_gid,
            .mtime_s = status.st_mtim.tv_sec,
            .mtime_ns = static_cast<std::uint32_t>(status.st_mtim.tv_nsec)};
  }

  /// At once where content may follow, else in pages.
  void send_entry(const TreeEntry& entry) {
    if (request_.content == TreeContent::files) {
      stream_.send(FrameType::entry, encode(entry));
      return;
    }
    page_.entries.push_back(entry);
    page_bytes_ += k_entry_overhead + entry.path.size() + entry.link_target.size() + entry.problem.size();
    if (page_.entries.size() == k_max_page || page_bytes_ >= k_page_bytes) send_page();
  }

  void send_page() {
    if (page_.entries.empty()) return;
    stream_.send(FrameType::entry, encode(page_));
    page_.entries.clear();
    page_bytes_ = 0;
  }

  void send_item(int folder, const std::string& name, const std::string& relative, const struct stat& status,
                 std::uint32_t depth) {
    if (S_ISREG(status.st_mode)) return send_file(folder, name, relative, status);
    bool enter = status.st_dev == device_ && (request_.max_depth == 0 || depth < request_.max_depth);
    if (S_ISDIR(status.st_mode) && enter) return send_folder(folder, name, relative, status, depth);
    auto entry = make_entry(relative, status);
    if (S_ISLNK(status.st_mode)) {
      std::array<char, PATH_MAX> target{};
      auto count = ::readlinkat(folder, name.c_str(), target.data(), target.size());
      if (count > 0) entry.link_target.assign(target.data(), static_cast<std::size_t>(count));
    }
    send_entry(entry);
    ++reply_.entries;
  }

  void send_file(int folder, const std::string& name, const std::string& relative, const struct stat& seen) {
    if (request_.content == TreeContent::names_only) {
      send_entry(make_entry(relative, seen));
      ++reply_.entries;
      return;
    }
    struct stat status = seen;
    auto fd = open_regular(folder, name, shown(relative), status);
    if (!fd) {
      report(relative, seen, fd.error().error_number);
      return;
    }
    auto entry = make_entry(relative, status);
    entry.holes = has_holes(status);
    send_entry(entry);
    FileBytes file{fd->get(), 0, entry.size, shown(relative)};
    auto sent = entry.holes ? send_sparse(file) : send_file_bytes(stream_, file);
    ++reply_.entries;
    reply_.bytes += sent.bytes;
    if (sent.bytes == entry.size) return;
    // The size is promised: what the file did not have is sent as zeros, and named in the reply.
    add_problem(reply_, relative, sent.failure ? static_cast<int>(sent.failure->error_number) : 0,
                "could not be read to the end; the rest was filled with zeroes");
    pad(entry.size - sent.bytes);
  }

  static bool has_holes(const struct stat& status) {
    constexpr std::uint64_t k_stat_block = 512;  // stat(2)
    return static_cast<std::uint64_t>(status.st_blocks) * k_stat_block <
           static_cast<std::uint64_t>(status.st_size);
  }

  /// Sends the pieces that hold data, and says where nothing is.
  SentBytes send_sparse(const FileBytes& file) {
    std::uint64_t done = 0;
    while (done < file.size) {
      auto found = ::lseek(file.fd, static_cast<off_t>(done), SEEK_DATA);
      // ENXIO: nothing but a hole is left. Any other error: a file system without holes.
      auto data = found >= 0 ? static_cast<std::uint64_t>(found) : errno == ENXIO ? file.size : done;
      data = std::min(data, file.size);
      if (data > done) {
        if (!stream_.send(FrameType::entry, encode(TreeHole{.length = data - done}))) return {done};
        done = data;
        continue;
      }
      auto hole = ::lseek(file.fd, static_cast<off_t>(done), SEEK_HOLE);
      auto end = hole > found ? std::min(static_cast<std::uint64_t>(hole), file.size) : file.size;
      auto sent = send_file_bytes(stream_, {file.fd, done, end - done, file.shown});
      done += sent.bytes;
      if (done < end) return {done, sent.failure};
    }
    return {done};
  }

  void pad(std::uint64_t missing) {
    while (missing > 0) {
      auto size = std::min<std::uint64_t>(missing, k_max_payload);
      if (!stream_.send(FrameType::output, std::string(size, '\0'))) return;
      missing -= size;
    }
  }

  void send_folder(int parent, const std::string& name, const std::string& relative,
                   const struct stat& status, std::uint32_t depth) {
    if (depth >= k_max_depth) return report(relative, status, ENAMETOOLONG, "the tree is too deep");
    // Only the root may be reached through a link.
    int no_follow = depth == 0 ? 0 : O_NOFOLLOW;
    Fd fd(::openat(parent, name.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC | no_follow));
    std::unique_ptr<DIR, int (*)(DIR*)> folder(fd ? ::fdopendir(fd.get()) : nullptr, ::closedir);
    if (folder == nullptr) return report(relative, status, errno);
    send_entry(make_entry(relative, status));
    ++reply_.entries;
    int folder_fd = fd.release();
    while (auto* item = ::readdir(folder.get())) {
      std::string_view child = item->d_name;
      if (child == "." || child == "..") continue;
      if (stream_.cancelled()) return;
      auto child_relative = relative.empty() ? std::string(child) : relative + "/" + std::string(child);
      struct stat child_status{};
      if (::fstatat(folder_fd, item->d_name, &child_status, AT_SYMLINK_NOFOLLOW) != 0) {
        if (errno != ENOENT) report(child_relative, child_status, errno);
        continue;
      }
      send_item(folder_fd, std::string(child), child_relative, child_status, depth + 1);
    }
  }

  JobStream& stream_;
  const TreeOutRequest& request_;
  std::string shown_;
  dev_t device_ = 0;
  TreePage page_;
  std::size_t page_bytes_ = 0;
  TreeReply reply_;
};

}  // namespace

void add_problem(TreeReply& reply, const std::string& path, int error_number, std::string message) {
  constexpr std::size_t k_max_problems = 100;
  constexpr std::size_t k_max_text = 1000;  // of a path or message, so that the reply fits a frame
  ++reply.failed;
  if (reply.problems.size() == k_max_problems) return;
  message.resize(std::min(message.size(), k_max_text));
  reply.problems.push_back(
      {.path = path.substr(0, k_max_text), .error_number = error_number, .message = std::move(message)});
}

Outcome<TreeReply> send_tree(JobStream& stream, const TreeOutRequest& request) {
  return TreeSender(stream, request).run();
}

}  // namespace holt::guest
