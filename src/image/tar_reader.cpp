#include "image/tar_reader.hpp"

#include <locale.h>
#include <sys/stat.h>

#include <archive.h>
#include <archive_entry.h>
#include <fmt/format.h>

namespace holt::image {
namespace {

/// (uid_t)-1 means "unchanged" to chown(2), so no file has it.
constexpr std::int64_t k_highest_id = 0xfffffffe;

std::expected<EntryKind, std::string> kind_of(archive_entry* entry) {
  switch (archive_entry_filetype(entry)) {
    case AE_IFREG:
      return EntryKind::regular;
    case AE_IFDIR:
      return EntryKind::directory;
    case AE_IFLNK:
      return EntryKind::symlink;
    case AE_IFCHR:
      return EntryKind::character_device;
    case AE_IFBLK:
      return EntryKind::block_device;
    case AE_IFIFO:
      return EntryKind::fifo;
    default:
      return std::unexpected("is of a kind that no file system has");
  }
}

std::expected<Metadata, std::string> metadata_of(archive_entry* entry) {
  std::int64_t uid = archive_entry_uid(entry);
  std::int64_t gid = archive_entry_gid(entry);
  if (uid < 0 || uid > k_highest_id) return std::unexpected(fmt::format("has the user id {}", uid));
  if (gid < 0 || gid > k_highest_id) return std::unexpected(fmt::format("has the group id {}", gid));
  Metadata metadata{.permissions = static_cast<std::uint32_t>(archive_entry_perm(entry)) & 07777U,
                    .uid = static_cast<std::uint32_t>(uid),
                    .gid = static_cast<std::uint32_t>(gid),
                    .mtime_seconds = archive_entry_mtime(entry)};
  long nanoseconds = archive_entry_mtime_nsec(entry);
  if (nanoseconds > 0 && nanoseconds < 1'000'000'000) {
    // libarchive gives both parts of "-1.5" without the sign that is the fraction's, too.
    bool before_epoch = metadata.mtime_seconds < 0;
    if (before_epoch) --metadata.mtime_seconds;
    metadata.mtime_nanoseconds =
        static_cast<std::uint32_t>(before_epoch ? 1'000'000'000 - nanoseconds : nanoseconds);
  }
  // What read_pax_records() made of "-0.5"; the ctime of an old GNU header has whole seconds.
  if (long fraction = archive_entry_ctime_nsec(entry); fraction > 0 && fraction < 1'000'000'000) {
    metadata.mtime_seconds = -1;
    metadata.mtime_nanoseconds = static_cast<std::uint32_t>(1'000'000'000 - fraction);
  }
  archive_entry_xattr_reset(entry);
  const char* name = nullptr;
  const void* value = nullptr;
  std::size_t size = 0;
  while (archive_entry_xattr_next(entry, &name, &value, &size) == ARCHIVE_OK) {
    metadata.xattrs.emplace_back(name ? name : "", std::string(static_cast<const char*>(value), size));
  }
  return metadata;
}

/// The thread's locale is "C" for its lifetime. libarchive converts names to the charset of the locale; in
/// this one it keeps the bytes, so that an archive means the same everywhere.
class PlainLocale {
 public:
  PlainLocale() : plain_(::newlocale(LC_ALL_MASK, "C", nullptr)), before_(::uselocale(plain_)) {}
  ~PlainLocale() {
    ::uselocale(before_);
    ::freelocale(plain_);
  }
  PlainLocale(const PlainLocale&) = delete;
  PlainLocale& operator=(const PlainLocale&) = delete;

 private:
  locale_t plain_;
  locale_t before_;
};

}  // namespace

TarReader::TarReader(ByteSource& source) : feed_(source), handle_(archive_read_new()) {
  PlainLocale plain;
  archive_read_support_format_tar(handle_.get());
  open_status_ = feed_.open(handle_.get());
  feed_.rethrow();
}

std::string TarReader::failure() {
  feed_.rethrow();
  const char* text = archive_error_string(handle_.get());
  return text ? printable(text, 200) : "the archive cannot be read";
}

std::expected<std::optional<TarMember>, std::string> TarReader::next() {
  if (open_status_ != ARCHIVE_OK) return std::unexpected(failure());
  PlainLocale plain;
  archive_entry* entry = nullptr;
  int status = archive_read_next_header(handle_.get(), &entry);
  if (status == ARCHIVE_EOF) return std::nullopt;
  // A warning says that a name is not text of the present locale; its bytes are kept, and that is all that
  // counts.
  if (status != ARCHIVE_OK && status != ARCHIVE_WARN) return std::unexpected(failure());

  TarMember member;
  member.index = ++index_;
  const char* path = archive_entry_pathname(entry);
  if (!path) return std::unexpected("a name cannot be read");
  member.path = path;
  if (const char* target = archive_entry_hardlink(entry)) {
    member.hard_link = target;
    return member;
  }
  auto kind = kind_of(entry);
  if (!kind) return std::unexpected(fmt::format("'{}' {}", printable(member.path, 200), kind.error()));
  auto metadata = metadata_of(entry);
  if (!metadata)
    return std::unexpected(fmt::format("'{}' {}", printable(member.path, 200), metadata.error()));
  member.kind = *kind;
  member.metadata = std::move(*metadata);
  if (const char* target = archive_entry_symlink(entry)) member.symlink = target;
  member.device_major = static_cast<std::uint32_t>(archive_entry_rdevmajor(entry));
  member.device_minor = static_cast<std::uint32_t>(archive_entry_rdevminor(entry));
  std::int64_t size = archive_entry_size(entry);
  if (size < 0) return std::unexpected(fmt::format("'{}' has a negative size", printable(member.path, 200)));
  member.size = static_cast<std::uint64_t>(size);
  member.is_sparse = archive_entry_sparse_count(entry) > 0;
  return member;
}

std::expected<std::optional<TarData>, std::string> TarReader::next_data() {
  const void* data = nullptr;
  std::size_t size = 0;
  la_int64_t offset = 0;
  int status = archive_read_data_block(handle_.get(), &data, &size, &offset);
  if (status == ARCHIVE_EOF) return std::nullopt;
  if (status != ARCHIVE_OK && status != ARCHIVE_WARN) return std::unexpected(failure());
  return TarData{static_cast<std::uint64_t>(offset), {static_cast<const char*>(data), size}};
}

}  // namespace holt::image
