#include "image/local/folder_tar.hpp"

#include "holt/base/error.hpp"
#include "image/archive_writer.hpp"

#include <algorithm>
#include <cerrno>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <archive.h>
#include <archive_entry.h>
#include <fmt/format.h>

namespace holt::image {
namespace fs = std::filesystem;
namespace {

constexpr std::size_t k_piece_bytes = std::size_t{1} << 20;

struct EntryDeleter {
  void operator()(archive_entry* entry) const { archive_entry_free(entry); }
};
using Entry = std::unique_ptr<archive_entry, EntryDeleter>;

struct stat status_of(const fs::path& path) {
  struct stat status{};
  if (::lstat(path.c_str(), &status) != 0) throw system_error(errno, "read " + path.string(), path.string());
  return status;
}

/// Names of a folder, the first in order at the end.
std::vector<std::string> names_in(const fs::path& folder) {
  std::vector<std::string> names;
  std::error_code error;
  fs::directory_iterator it(folder, error);
  for (; !error && it != fs::directory_iterator(); it.increment(error)) {
    names.push_back(it->path().filename().string());
  }
  if (error) throw system_error(error.value(), "read the folder " + folder.string(), folder.string());
  std::ranges::sort(names, std::greater<>());
  return names;
}

/// What the reading leaves behind, and what is the host's own: where the file lies, when it was looked at.
void leave_out_host(archive_entry* entry) {
  archive_entry_unset_atime(entry);
  archive_entry_unset_ctime(entry);
  archive_entry_unset_birthtime(entry);
  archive_entry_set_mtime(entry, archive_entry_mtime(entry), 0);
}

}  // namespace

FolderTar::FolderTar(fs::path folder, std::optional<CancellationToken> cancel)
    : root_(std::move(folder)),
      cancel_(std::move(cancel)),
      disk_(archive_read_disk_new()),
      writer_(archive_write_new(), archive_write_free),
      links_(archive_entry_linkresolver_new(), archive_entry_linkresolver_free),
      piece_(k_piece_bytes, '\0') {
  archive_read_disk_set_symlink_physical(disk_.get());
  archive_read_disk_set_behavior(disk_.get(), ARCHIVE_READDISK_NO_ACL | ARCHIVE_READDISK_NO_FFLAGS);
  archive_write_set_format_pax_restricted(writer_.get());
  // Names are bytes, whatever the locale of this process says, and one form of attributes is enough.
  archive_write_set_options(writer_.get(), "hdrcharset=BINARY,xattrheader=SCHILY");
  archive_write_set_bytes_per_block(writer_.get(), 0);
  archive_entry_linkresolver_set_strategy(links_.get(), archive_format(writer_.get()));
  if (archive_write_open(writer_.get(), this, nullptr, &FolderTar::collect, nullptr) != ARCHIVE_OK) {
    throw failure("pack " + root_.string());
  }
  struct stat status{};
  if (::stat(root_.c_str(), &status) != 0) throw system_error(errno, "open the folder", root_.string());
  device_ = status.st_dev;
  levels_.push_back({.path = "", .names = {"."}});
}

FolderTar::~FolderTar() {
  if (!finished_) give_up_archive(writer_.get());
}

long FolderTar::collect(archive* /*writer*/, void* self, const void* bytes, std::size_t size) {
  static_cast<FolderTar*>(self)->packed_.append(static_cast<const char*>(bytes), size);
  return static_cast<long>(size);
}

Error FolderTar::failure(const std::string& action) const {
  const char* text = archive_error_string(writer_.get());
  return {ErrorCode::image_invalid,
          fmt::format("{}: {}", action, text ? printable(text, 200) : "it cannot be packed")};
}

std::string_view FolderTar::read() {
  packed_.clear();
  while (packed_.empty() && !finished_) {
    if (cancel_) cancel_->throw_if_cancelled();
    step();
  }
  // What libarchive writes while the piece is in use goes elsewhere.
  std::swap(packed_, given_);
  return given_;
}

void FolderTar::step() {
  if (left_ > 0) return pack_data();
  file_.reset();
  if (levels_.empty()) return finish();
  Level& level = levels_.back();
  if (level.names.empty()) {
    levels_.pop_back();
    return;
  }
  fs::path name = level.path / level.names.back();
  level.names.pop_back();
  pack(name);
}

void FolderTar::pack(const fs::path& name) {
  fs::path path = root_ / name;
  struct stat status = status_of(path);
  if (S_ISSOCK(status.st_mode)) return;
  if (S_ISREG(status.st_mode)) {
    file_.reset(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY));
    if (!file_ || ::fstat(file_.get(), &status) != 0) {
      throw system_error(errno, "read " + path.string(), path.string());
    }
  }
  Entry entry(archive_entry_new());
  archive_entry_copy_sourcepath(entry.get(), path.c_str());
  archive_entry_copy_pathname(entry.get(), name.c_str());
  if (archive_read_disk_entry_from_file(disk_.get(), entry.get(), file_.get(), &status) < ARCHIVE_WARN) {
    throw Error(ErrorCode::storage_error,
                fmt::format("read {}: {}", path.string(), archive_error_string(disk_.get())));
  }
  leave_out_host(entry.get());
  archive_entry* ready = entry.release();
  archive_entry* spare = nullptr;
  archive_entry_linkify(links_.get(), &ready, &spare);
  entry.reset(ready);
  archive_entry_set_dev(entry.get(), 0);
  archive_entry_set_ino(entry.get(), 0);
  archive_entry_set_nlink(entry.get(), 1);
  if (archive_write_header(writer_.get(), entry.get()) < ARCHIVE_WARN) throw failure("pack " + path.string());
  bool has_data = file_ && !archive_entry_hardlink(entry.get());
  left_ = has_data ? static_cast<std::uint64_t>(status.st_size) : 0;
  name_ = path;
  if (S_ISDIR(status.st_mode) && status.st_dev == device_) enter(name == "." ? fs::path() : name);
}

void FolderTar::enter(const fs::path& folder) {
  levels_.push_back({.path = folder, .names = names_in(root_ / folder)});
}

void FolderTar::pack_data() {
  std::size_t want = static_cast<std::size_t>(std::min<std::uint64_t>(left_, piece_.size()));
  ssize_t n = ::read(file_.get(), piece_.data(), want);
  if (n < 0 && errno == EINTR) return;
  if (n < 0) throw system_error(errno, "read " + name_.string(), name_.string());
  if (n == 0) {
    throw Error(ErrorCode::image_invalid, fmt::format("read {}: it became shorter meanwhile", name_.string()),
                {.subject = name_.string()});
  }
  if (archive_write_data(writer_.get(), piece_.data(), static_cast<std::size_t>(n)) < 0) {
    throw failure("pack " + name_.string());
  }
  left_ -= static_cast<std::uint64_t>(n);
}

void FolderTar::finish() {
  if (archive_write_close(writer_.get()) != ARCHIVE_OK) throw failure("pack " + root_.string());
  finished_ = true;
}

}  // namespace holt::image
