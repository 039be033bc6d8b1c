#include "machine/host_tree.hpp"

#include "holt/base/error.hpp"
#include "holt/base/files.hpp"
#include "holt/base/ids.hpp"

#include <array>
#include <cerrno>
#include <cstdio>
#include <fcntl.h>
#include <limits>
#include <linux/openat2.h>
#include <ranges>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace holt::machine {
namespace {

constexpr std::size_t k_longest_name = 255;
constexpr std::size_t k_longest_path = 4095;

Fd open_beneath(const Fd& folder, const std::string& path, int flags) {
  open_how how{};
  how.flags = static_cast<std::uint64_t>(flags | O_CLOEXEC);
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS;
  return Fd(static_cast<int>(
      ::syscall(SYS_openat2, folder.get(), path.empty() ? "." : path.c_str(), &how, sizeof how)));
}

std::array<timespec, 2> times_of(const HostEntry& facts) {
  constexpr std::int64_t k_second = 1'000'000'000;
  auto seconds = facts.mtime_ns / k_second;
  auto rest = facts.mtime_ns % k_second;
  if (rest < 0) {
    seconds--;
    rest += k_second;
  }
  return {{{0, UTIME_OMIT}, {seconds, rest}}};
}

/// Owners, modes and times are worth having, not worth failing for. The owner goes first: the kernel takes
/// setuid bits away then, and none is given back.
void set_facts(const Fd& fd, const HostEntry& facts) {
  if (facts.owner) {
    [[maybe_unused]] int changed = ::fchown(fd.get(), facts.owner->first, facts.owner->second);
  }
  ::fchmod(fd.get(), facts.mode & 0777);
  auto times = times_of(facts);
  ::futimens(fd.get(), times.data());
}

}  // namespace

std::optional<TreePath> TreePath::from(std::string_view text) {
  TreePath path;
  if (text.empty()) return path;
  if (text.size() > k_longest_path) return std::nullopt;
  for (std::size_t at = 0; at <= text.size();) {
    auto end = std::min(text.find('/', at), text.size());
    auto component = text.substr(at, end - at);
    if (component.empty() || component == "." || component == ".." || component.size() > k_longest_name ||
        component.find('\0') != std::string_view::npos) {
      return std::nullopt;
    }
    path.components_.emplace_back(component);
    at = end + 1;
  }
  return path;
}

TreePath TreePath::parent() const {
  TreePath parent = *this;
  parent.components_.pop_back();
  return parent;
}

std::string TreePath::text() const {
  return fmt::format("{}", fmt::join(components_, "/"));
}

HostTree::HostTree(const std::filesystem::path& target) : target_(target) {
  if (target_.filename().empty()) target_ = target_.parent_path();
  auto parent = target_.parent_path();
  outside_ = Fd(::open(parent.empty() ? "." : parent.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!outside_) throw system_error(errno, fmt::format("open the folder {}", parent.string()), parent);
}

HostTree::~HostTree() {
  if (file_ && open_place_) ::unlinkat(open_place_->folder.get(), temporary_.c_str(), 0);
}

HostTree::Place HostTree::place_of(const TreePath& path) {
  if (path.empty()) return {duplicate(outside_.get()), target_.filename().string()};
  if (!root_)
    throw Error(ErrorCode::guest_protocol,
                "The guest program sent an entry below something that is no folder");
  Fd folder = open_beneath(root_, path.parent().text(), O_RDONLY | O_DIRECTORY);
  if (!folder) throw system_error(errno, fmt::format("open the folder of {}", printable(path.text())));
  return {std::move(folder), path.name()};
}

void HostTree::make_directory(const TreePath& path, const HostEntry& facts) {
  auto place = place_of(path);
  if (::mkdirat(place.folder.get(), place.name.c_str(), 0700) != 0 && errno != EEXIST) {
    throw system_error(errno, fmt::format("make the folder {}", printable(place.name)));
  }
  // The root itself is what the caller named, and may be a link of the caller's; nothing below it may.
  Fd made = path.empty()
                ? Fd(::openat(place.folder.get(), place.name.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC))
                : open_beneath(place.folder, place.name, O_RDONLY | O_DIRECTORY);
  if (!made) throw system_error(errno, fmt::format("make the folder {}", printable(place.name)));
  if (path.empty()) root_ = std::move(made);
  directories_.emplace_back(path, facts);
}

void HostTree::make_link(const TreePath& path, const std::string& target, const HostEntry& facts) {
  auto place = place_of(path);
  if (target.empty() || target.size() > k_longest_path || target.find('\0') != std::string::npos) {
    throw Error(ErrorCode::guest_protocol, "The guest program sent a link to nothing");
  }
  auto temporary = fmt::format(".holt-{}", random_hex(16));
  if (::symlinkat(target.c_str(), place.folder.get(), temporary.c_str()) != 0 ||
      ::renameat(place.folder.get(), temporary.c_str(), place.folder.get(), place.name.c_str()) != 0) {
    int error = errno;
    ::unlinkat(place.folder.get(), temporary.c_str(), 0);
    throw system_error(error, fmt::format("make the link {}", printable(place.name)));
  }
  auto times = times_of(facts);
  ::utimensat(place.folder.get(), place.name.c_str(), times.data(), AT_SYMLINK_NOFOLLOW);
  if (facts.owner) {
    [[maybe_unused]] int changed = ::fchownat(place.folder.get(), place.name.c_str(), facts.owner->first,
                                              facts.owner->second, AT_SYMLINK_NOFOLLOW);
  }
}

void HostTree::begin_file(const TreePath& path, const HostEntry& facts) {
  file_.reset();
  open_place_ = place_of(path);
  temporary_ = fmt::format(".holt-{}", random_hex(16));
  file_facts_ = facts;
  ends_in_hole_ = false;
  file_ = Fd(::openat(open_place_->folder.get(), temporary_.c_str(),
                      O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!file_) throw system_error(errno, fmt::format("write {}", printable(open_place_->name)));
}

void HostTree::write(std::string_view bytes) {
  if (!file_) return;
  write_all(file_.get(), bytes);
  ends_in_hole_ = false;
}

void HostTree::skip(std::uint64_t size) {
  if (!file_) return;
  auto at = ::lseek(file_.get(), 0, SEEK_CUR);
  bool fits = size <= static_cast<std::uint64_t>(std::numeric_limits<off_t>::max() - at);
  if (!fits || ::lseek(file_.get(), static_cast<off_t>(size), SEEK_CUR) < 0) {
    throw system_error(fits ? errno : EFBIG, fmt::format("write {}", printable(open_place_->name)));
  }
  ends_in_hole_ = true;
}

void HostTree::end_file() {
  if (!file_ || !open_place_) return;
  Fd file = std::move(file_);
  bool whole = !ends_in_hole_ || ::ftruncate(file.get(), ::lseek(file.get(), 0, SEEK_CUR)) == 0;
  if (whole) set_facts(file, file_facts_);
  if (!whole || ::renameat(open_place_->folder.get(), temporary_.c_str(), open_place_->folder.get(),
                           open_place_->name.c_str()) != 0) {
    int error = errno;
    ::unlinkat(open_place_->folder.get(), temporary_.c_str(), 0);
    throw system_error(error, fmt::format("write {}", printable(open_place_->name)));
  }
}

void HostTree::finish() {
  for (const auto& [path, facts] : std::views::reverse(directories_)) {
    Fd folder = open_beneath(root_, path.text(), O_RDONLY | O_DIRECTORY);
    // The owner keeps access, or the copy could not even be removed.
    if (folder) set_facts(folder, {facts.mode | 0700, facts.mtime_ns, facts.owner});
  }
}

}  // namespace holt::machine
