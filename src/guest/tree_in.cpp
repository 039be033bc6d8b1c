#include "guest/file_replacement.hpp"
#include "guest/file_service.hpp"
#include "guest/paths.hpp"
#include "guest/tree.hpp"
#include "guest/users.hpp"

#include <cerrno>
#include <fcntl.h>
#include <linux/openat2.h>
#include <ranges>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <vector>

namespace holt::guest {
namespace {

using namespace protocol;

/// A name that stays below its root: no empty, "." or ".." component, not absolute.
bool is_plain_relative(std::string_view path) {
  if (path.size() >= 4096 || path.find('\0') != std::string_view::npos) return false;
  while (true) {
    auto end = path.find('/');
    auto piece = path.substr(0, end);
    if (piece.empty() || piece == "." || piece == "..") return false;
    if (end == std::string_view::npos) return true;
    path.remove_prefix(end + 1);
  }
}

class TreeReceiver {
 public:
  using Owner = std::optional<std::pair<uid_t, gid_t>>;

  TreeReceiver(JobStream& stream, const TreeInRequest& request, const Identity& user, Owner owner)
      : stream_(stream),
        request_(request),
        owner_(owner),
        keeps_owners_(request.keep_owner && user.is_root()),
        root_path_(without_trailing_slashes(request.path)) {}

  Outcome<TreeReply> run() {
    while (true) {
      auto frame = stream_.receive();
      if (!frame) return refuse(ErrorCode::cancelled, "the copy was cancelled", request_.path);
      if (frame->header.type == FrameType::input) {
        bool ends = frame->header.has(FrameFlag::end_of_data);
        if (!frame->payload.empty()) return refuse(ErrorCode::guest_protocol, "bytes without an entry");
        stream_.release(0);
        if (ends) break;
        continue;
      }
      auto entry = decode<TreeEntry>(frame->payload);
      stream_.release(frame->payload.size());
      if (!entry) return refuse(ErrorCode::guest_protocol, entry.error().text());
      if (auto taken = take(*entry); !taken) return std::unexpected(taken.error());
    }
    finish_folders();
    return reply_;
  }

 private:
  struct Folder {
    std::string path;
    mode_t mode = 0755;
    timespec mtime{};
  };

  Outcome<> take(const TreeEntry& entry) {
    ++reply_.entries;
    Outcome<> made;
    for (const auto& path : {entry.path, entry.hard_link}) {
      if (path.empty() || is_plain_relative(path)) continue;
      return refuse(ErrorCode::guest_protocol, "an entry whose path leaves the tree", path);
    }
    if (entry.type == FileType::regular && entry.hard_link.empty()) return take_file(entry);
    auto place = find_place(entry.path);
    if (!place) {
      made = std::unexpected(place.error());
    } else if (!entry.hard_link.empty()) {
      made = make_hard_link(*place, entry);
    } else if (entry.type == FileType::directory) {
      made = make_folder(*place, entry);
    } else if (entry.type == FileType::symlink) {
      made = make_link(*place, entry);
    } else {
      made = refuse(ErrorCode::not_regular, "not a file, folder or link", entry.path);
    }
    if (!made) note(entry, made.error());
    return {};
  }

  void note(const TreeEntry& entry, const Failure& failure) {
    add_problem(reply_, entry.path, static_cast<int>(failure.error_number), failure.message);
  }

  struct Place {
    int folder = -1;
    std::string name;
    std::string shown;
  };

  /// Folder and name of an entry. The folder stays open until another one is wanted: entries of one folder
  /// follow each other.
  Outcome<Place> find_place(const std::string& relative) {
    bool is_root = relative.empty();
    auto shown = is_root ? root_path_ : (root_path_ == "/" ? "" : root_path_) + "/" + relative;
    if (is_root && root_path_ == "/") return Place{AT_FDCWD, "/", shown};
    auto slash = relative.rfind('/');
    auto parent = is_root || slash == std::string::npos ? std::string() : relative.substr(0, slash);
    auto name =
        is_root ? split_path(root_path_).second : relative.substr(slash == std::string::npos ? 0 : slash + 1);
    if (auto opened = is_root ? open_above() : open_parent(parent); !opened)
      return std::unexpected(opened.error());
    return Place{is_root ? above_.get() : parent_.get(), name, shown};
  }

  Outcome<> open_above() {
    if (above_) return {};
    auto path = split_path(root_path_).first;
    if (request_.make_parents) {
      if (auto made = make_directories(path, 0755); !made) return made;
    }
    above_.reset(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!above_) return refuse_errno(errno, "write below", path);
    return {};
  }

  Outcome<> open_parent(const std::string& parent) {
    if (parent_ && parent == parent_name_) return {};
    auto opened = open_below(parent);
    if (!opened) return std::unexpected(opened.error());
    parent_ = std::move(*opened);
    parent_name_ = parent;
    return {};
  }

  /// A folder below the root; no link is followed on the way.
  Outcome<Fd> open_below(const std::string& relative) {
    if (!root_) {
      root_.reset(::open(root_path_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
      if (!root_) return refuse_errno(errno, "write below", root_path_);
    }
    open_how how{};
    how.flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC;
    how.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS;
    const char* name = relative.empty() ? "." : relative.c_str();
    Fd fd(static_cast<int>(::syscall(SYS_openat2, root_.get(), name, &how, sizeof how)));
    if (!fd) return refuse_errno(errno, "write below", root_path_ + "/" + relative);
    return fd;
  }

  Owner owner_of(const TreeEntry& entry) const {
    if (owner_ || !keeps_owners_) return owner_;
    return std::pair(entry.uid, entry.gid);
  }

  Outcome<> set_owner(const Place& place, const TreeEntry& entry) {
    auto owner = owner_of(entry);
    if (!owner) return {};
    if (::fchownat(place.folder, place.name.c_str(), owner->first, owner->second, AT_SYMLINK_NOFOLLOW) == 0)
      return {};
    return refuse_errno(errno, "change the owner of", place.shown);
  }

  Outcome<> make_folder(const Place& place, const TreeEntry& entry) {
    bool is_root = entry.path.empty();
    // Open to its owner until all that belongs in it is there.
    if (::mkdirat(place.folder, place.name.c_str(), 0700) != 0) {
      struct stat status{};
      int error_number = errno;
      int flags = is_root ? 0 : AT_SYMLINK_NOFOLLOW;
      bool there = error_number == EEXIST && ::fstatat(place.folder, place.name.c_str(), &status, flags) == 0;
      if (there && S_ISDIR(status.st_mode)) return {};  // merged, and left as it is
      return refuse_errno(there ? ENOTDIR : error_number, "make folder", place.shown);
    }
    folders_.push_back({entry.path,
                        entry.mode & 07777,
                        {.tv_sec = entry.mtime_s, .tv_nsec = static_cast<long>(entry.mtime_ns)}});
    return set_owner(place, entry);
  }

  /// Takes a name away for something new; never a folder.
  static bool clear_name(const Place& place) {
    struct stat status{};
    return ::fstatat(place.folder, place.name.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0 &&
           !S_ISDIR(status.st_mode) && ::unlinkat(place.folder, place.name.c_str(), 0) == 0;
  }

  Outcome<> make_hard_link(const Place& place, const TreeEntry& entry) {
    auto slash = entry.hard_link.rfind('/');
    auto folder = open_below(slash == std::string::npos ? "" : entry.hard_link.substr(0, slash));
    if (!folder) return std::unexpected(folder.error());
    auto name = entry.hard_link.substr(slash == std::string::npos ? 0 : slash + 1);
    // linkat(2) without flags names a link itself rather than what it points at.
    auto link = [&] {
      return ::linkat(folder->get(), name.c_str(), place.folder, place.name.c_str(), 0) == 0;
    };
    if (link() || same_file(folder->get(), name, place)) return {};
    if (errno == EEXIST && clear_name(place) && link()) return {};
    return refuse_errno(errno, "make link", place.shown);
  }

  static bool same_file(int folder, const std::string& name, const Place& place) {
    int error_number = errno;
    struct stat one{};
    struct stat other{};
    bool same = ::fstatat(folder, name.c_str(), &one, AT_SYMLINK_NOFOLLOW) == 0 &&
                ::fstatat(place.folder, place.name.c_str(), &other, AT_SYMLINK_NOFOLLOW) == 0 &&
                one.st_dev == other.st_dev && one.st_ino == other.st_ino;
    errno = error_number;
    return same;
  }

  Outcome<> make_link(const Place& place, const TreeEntry& entry) {
    auto link = [&] { return ::symlinkat(entry.link_target.c_str(), place.folder, place.name.c_str()) == 0; };
    bool made = link() || (errno == EEXIST && clear_name(place) && link());
    if (!made) return refuse_errno(errno, "make link", place.shown);
    timespec times[2] = {{.tv_sec = 0, .tv_nsec = UTIME_OMIT},
                         {.tv_sec = entry.mtime_s, .tv_nsec = static_cast<long>(entry.mtime_ns)}};
    ::utimensat(place.folder, place.name.c_str(), times, AT_SYMLINK_NOFOLLOW);
    return set_owner(place, entry);
  }

  Outcome<std::unique_ptr<FileReplacement>> begin_file(const TreeEntry& entry) {
    // What the caller named may be a link, and is then written through; nothing below it may.
    bool is_root = entry.path.empty();
    if (is_root) {
      auto target = write_target(root_path_);
      if (!target) return std::unexpected(target.error());
      root_path_ = *target;
    }
    auto place = find_place(entry.path);
    if (!place) return std::unexpected(place.error());
    ReplacementOptions options{
        .mode = entry.mode & 07777,
        .size = entry.holes ? std::nullopt : std::optional(entry.size),
        .new_in_place = !is_root,
        .over_links = !is_root,
        .mtime = timespec{.tv_sec = entry.mtime_s, .tv_nsec = static_cast<long>(entry.mtime_ns)},
        .owner = owner_of(entry)};
    return FileReplacement::begin(place->folder, place->name, place->shown, options);
  }

  struct Piece {
    std::uint64_t size = 0;
    bool is_hole = false;
  };

  /// What a frame adds to a file that lacks `left` bytes.
  static Outcome<Piece> piece_of(const Frame& frame, const TreeEntry& entry, std::uint64_t left) {
    Piece piece{.size = frame.payload.size(), .is_hole = frame.header.type == FrameType::entry};
    if (piece.is_hole) {
      auto hole = decode<TreeHole>(frame.payload);
      if (!hole) return refuse(ErrorCode::guest_protocol, hole.error().text());
      piece.size = hole->length;
    }
    bool good = piece.size <= left &&
                (piece.is_hole ? entry.holes && piece.size > 0 : !frame.header.has(FrameFlag::end_of_data));
    if (!good) return refuse(ErrorCode::guest_protocol, "not the bytes that an entry announced", entry.path);
    return piece;
  }

  /// Takes the bytes of a file also when they cannot be written: the next entry is behind them.
  Outcome<> take_file(const TreeEntry& entry) {
    auto file = begin_file(entry);
    Outcome<> state;
    if (!file) state = std::unexpected(file.error());
    for (std::uint64_t left = entry.size; left > 0;) {
      auto frame = stream_.receive();
      if (!frame) return refuse(ErrorCode::cancelled, "the copy was cancelled", request_.path);
      auto piece = piece_of(*frame, entry, left);
      if (!piece) return std::unexpected(piece.error());
      if (state) state = piece->is_hole ? (*file)->skip(piece->size) : (*file)->write(frame->payload);
      left -= piece->size;
      stream_.release(frame->payload.size());
    }
    if (state) state = (*file)->commit();
    if (!state) {
      note(entry, state.error());
    } else {
      reply_.bytes += entry.size;
    }
    return {};
  }

  /// Modes and times of folders, deepest first: a folder without rights for its owner could not be filled,
  /// and filling it changes its time.
  void finish_folders() {
    for (const auto& folder : folders_ | std::views::reverse) {
      auto place = find_place(folder.path);
      if (!place) continue;
      timespec times[2] = {{.tv_sec = 0, .tv_nsec = UTIME_OMIT}, folder.mtime};
      ::fchmodat(place->folder, place->name.c_str(), folder.mode, 0);
      ::utimensat(place->folder, place->name.c_str(), times, AT_SYMLINK_NOFOLLOW);
    }
  }

  JobStream& stream_;
  const TreeInRequest& request_;
  Owner owner_;
  bool keeps_owners_;
  std::string root_path_;
  Fd above_;  // folder that holds the root
  Fd root_;
  Fd parent_;  // folder of the last entry
  std::string parent_name_;
  std::vector<Folder> folders_;
  TreeReply reply_;
};

}  // namespace

Outcome<TreeReply> receive_tree(JobStream& stream, const TreeInRequest& request, const Identity& user) {
  auto owner = find_owner(request.owner);
  if (!owner) return std::unexpected(owner.error());
  return TreeReceiver(stream, request, user, *owner).run();
}

}  // namespace holt::guest
