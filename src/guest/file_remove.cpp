#include "guest/file_service.hpp"
#include "guest/paths.hpp"

#include <cerrno>
#include <dirent.h>
#include <fcntl.h>
#include <memory>
#include <sys/stat.h>
#include <unistd.h>
#include <vector>

namespace holt::guest {
namespace {

using namespace protocol;

/// Removes a tree holding one open folder, however deep it is: up goes by "..", checked against what was
/// there.
class TreeRemover {
 public:
  TreeRemover(JobStream& stream, std::string shown) : stream_(stream), shown_(std::move(shown)) {}

  /// Empties the folder `name` of `parent`, then removes it.
  Outcome<std::uint64_t> run(int parent, const std::string& name) {
    Fd top(::fcntl(parent, F_DUPFD_CLOEXEC, 0));
    current_ = std::move(top);
    if (auto entered = enter(name); !entered) return std::unexpected(entered.error());
    while (!levels_.empty()) {
      if (stream_.cancelled()) return refuse(ErrorCode::cancelled, "the removal was cancelled", shown_);
      auto next = empty_until_folder();
      if (!next) return std::unexpected(next.error());
      auto moved = next->empty() ? leave() : enter(*next);
      if (!moved) return std::unexpected(moved.error());
    }
    return removed_;
  }

 private:
  struct Level {
    std::string name;
    dev_t device = 0;  // of the folder above
    ino_t inode = 0;
  };

  std::string path_of(const std::string& name) const {
    auto path = shown_;
    for (std::size_t i = 1; i < levels_.size(); ++i) path += "/" + levels_[i].name;
    return levels_.empty() ? path : path + "/" + name;
  }

  Outcome<> enter(const std::string& name) {
    struct stat above{};
    struct stat inside{};
    ::fstat(current_.get(), &above);
    Fd fd(::openat(current_.get(), name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (!fd || ::fstat(fd.get(), &inside) != 0) return refuse_errno(errno, "remove", path_of(name));
    if (inside.st_dev != above.st_dev) return refuse_errno(EBUSY, "remove", path_of(name));
    levels_.push_back({name, above.st_dev, above.st_ino});
    current_ = std::move(fd);
    return {};
  }

  Outcome<> leave() {
    auto level = std::move(levels_.back());
    levels_.pop_back();
    struct stat above{};
    Fd fd(::openat(current_.get(), "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!fd) fd.reset(::openat(current_.get(), "..", O_PATH | O_DIRECTORY | O_CLOEXEC));
    bool same =
        fd && ::fstat(fd.get(), &above) == 0 && above.st_dev == level.device && above.st_ino == level.inode;
    if (!same) return refuse_errno(EBUSY, "remove", path_of(level.name));
    current_ = std::move(fd);
    if (::unlinkat(current_.get(), level.name.c_str(), AT_REMOVEDIR) != 0 && errno != ENOENT) {
      return refuse_errno(errno, "remove", path_of(level.name));
    }
    ++removed_;
    return {};
  }

  /// Removes what is no folder; the name of the first folder, empty when there is none.
  Outcome<std::string> empty_until_folder() {
    Fd again(::openat(current_.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    std::unique_ptr<DIR, int (*)(DIR*)> folder(again ? ::fdopendir(again.get()) : nullptr, ::closedir);
    if (folder == nullptr) return refuse_errno(errno, "remove", path_of("."));
    again.release();
    while (auto* item = ::readdir(folder.get())) {
      std::string name = item->d_name;
      if (name == "." || name == "..") continue;
      if (item->d_type == DT_DIR) return name;
      if (::unlinkat(current_.get(), name.c_str(), 0) == 0) {
        ++removed_;
      } else if (errno == EISDIR) {
        return name;
      } else if (errno != ENOENT) {
        return refuse_errno(errno, "remove", path_of(name));
      }
    }
    return std::string();
  }

  JobStream& stream_;
  std::string shown_;
  Fd current_;
  std::vector<Level> levels_;
  std::uint64_t removed_ = 0;
};

bool is_at_or_above(const std::string& path, const std::string& other) {
  return path == "/" || other == path || other.starts_with(path + "/");
}

}  // namespace

Outcome<RemoveReply> remove_path(JobStream& stream, const RemoveRequest& request) {
  auto path = without_trailing_slashes(request.path);
  auto [folder_path, name] = split_path(path);
  // The last name is not followed; "." and ".." stand for folders that must be named to be compared.
  bool plain = !name.empty() && name != "." && name != "..";
  auto resolved = real_path(plain ? folder_path : path);
  if (!resolved) return std::unexpected(resolved.error());
  if (plain) *resolved += (resolved->ends_with('/') ? "" : "/") + name;
  auto keep = request.keep;
  keep.emplace_back("/");
  for (const auto& kept : keep) {
    auto real = real_path(kept);
    if (!real || !is_at_or_above(*resolved, *real)) continue;
    return refuse(ErrorCode::invalid_config, "will not remove " + path + ": " + *real + " is to stay", path);
  }
  std::tie(folder_path, name) = split_path(*resolved);
  Fd folder(::open(folder_path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!folder && errno == EACCES) folder.reset(::open(folder_path.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  struct stat status{};
  if (!folder || ::fstatat(folder.get(), name.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0) {
    return refuse_errno(errno, "remove", path);
  }
  if (!S_ISDIR(status.st_mode)) {
    if (::unlinkat(folder.get(), name.c_str(), 0) != 0) return refuse_errno(errno, "remove", path);
    return RemoveReply{.entries = 1};
  }
  if (!request.recursive) {
    if (::unlinkat(folder.get(), name.c_str(), AT_REMOVEDIR) != 0) return refuse_errno(errno, "remove", path);
    return RemoveReply{.entries = 1};
  }
  auto removed = TreeRemover(stream, path).run(folder.get(), name);
  if (!removed) return std::unexpected(removed.error());
  return RemoveReply{.entries = *removed};
}

}  // namespace holt::guest
