#include "machine/copy_log.hpp"
#include "machine/file_streams.hpp"
#include "machine/guest_link.hpp"
#include "machine/tree_copy.hpp"

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
      : options_(options), patience_(options.call), log_(options) {
    connection_ = StreamConnection::open(folder, TreeInRequest{.path = target}, Effect::possible,
                                         patience_.next_step());
  }
  ~TreeSender() { connection_->kill(); }

  CopyResult send(const std::filesystem::path& source) {
    // What the caller names is followed; links below it are not, unless asked.
    Fd fd(::open(source.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    struct stat info{};
    if (!fd || ::fstat(fd.get(), &info) != 0) {
      throw system_error(errno, fmt::format("read {}", source.string()), source);
    }
    send_opened(std::move(fd), info, "");
    connection_->end_input();
    auto reply = decode<TreeReply>(connection_->reply(patience_.next_step()));
    if (!reply) throw guest_protocol_error(reply.error());
    for (const auto& problem : reply->problems) log_.failed(problem.path, problem.message);
    log_.result.failed = std::max(log_.result.failed, reply->failed);
    log_.result.files -= std::min(log_.result.files, reply->failed);
    return std::move(log_.result);
  }

 private:
  void send_opened(Fd fd, const struct stat& info, const std::string& path) {
    if (S_ISDIR(info.st_mode)) return send_directory(std::move(fd), info, path);
    if (S_ISREG(info.st_mode)) return send_file(fd, info, path);
    log_.skipped(path, "is no file, folder or link");
  }

  void send_entry(const struct stat& info, protocol::FileType type, const std::string& path,
                  std::string link = {}) {
    TreeEntry entry{
        .path = path,
        .type = type,
        .size = type == protocol::FileType::regular ? static_cast<std::uint64_t>(info.st_size) : 0,
        .mode = info.st_mode & 07777,
        .mtime_s = info.st_mtim.tv_sec,
        .mtime_ns = static_cast<std::uint32_t>(info.st_mtim.tv_nsec),
        .link_target = std::move(link)};
    if (!connection_->send_entry(encode(entry), patience_.next_step())) throw_early_end();
    log_.entry();
  }

  void send_file(const Fd& fd, const struct stat& info, const std::string& path) {
    send_entry(info, protocol::FileType::regular, path);
    auto left = static_cast<std::uint64_t>(info.st_size);
    while (left > 0) {
      ssize_t n = ::read(fd.get(), buffer_.data(), std::min<std::uint64_t>(buffer_.size(), left));
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) {
        // The size has been told already: the rest is filled up, and the file named.
        log_.failed(path, n < 0 ? error_text(errno)
                                : "became shorter while it was read; the rest was filled with zeroes");
        n = static_cast<ssize_t>(std::min<std::uint64_t>(buffer_.size(), left));
        std::ranges::fill(buffer_, '\0');
      }
      auto piece = std::string_view(buffer_.data(), static_cast<std::size_t>(n));
      if (!connection_->send_input(piece, patience_.next_step())) throw_early_end();
      log_.bytes(piece.size());
      left -= piece.size();
    }
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

  [[noreturn]] void throw_early_end() {
    connection_->reply(patience_.next_step());
    throw Error(ErrorCode::guest_protocol, "The guest program ended a copy before its data");
  }

  const CopyOptions& options_;
  Patience patience_;
  CopyLog log_;
  std::unique_ptr<StreamConnection> connection_;
  std::vector<char> buffer_ = std::vector<char>(std::size_t{1} << 20);
  std::size_t depth_ = 0;
};

}  // namespace

CopyResult copy_tree_in(const MachineFolder& folder, const std::filesystem::path& source,
                        const std::string& target, const CopyOptions& options) {
  return TreeSender(folder, target, options).send(source);
}

}  // namespace holt::machine
