#include "machine/tar_writer.hpp"

#include "holt/base/error.hpp"
#include "image/archive_writer.hpp"
#include "machine/file_streams.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <locale.h>

#include <archive.h>
#include <archive_entry.h>
#include <fmt/format.h>

namespace holt::machine {
namespace {

struct EntryDeleter {
  void operator()(archive_entry* entry) const { archive_entry_free(entry); }
};

/// Made once, kept for all tars.
locale_t utf8_locale() {
  static const locale_t made = [] {
    auto locale = ::newlocale(LC_ALL_MASK, "C.UTF-8", nullptr);
    // Of a C library that does not bring it along, names of other than ASCII are marked too.
    return locale != nullptr ? locale : ::newlocale(LC_ALL_MASK, "C", nullptr);
  }();
  return made;
}

/// While it lives, text of this thread is UTF-8, whatever the program's locale says. libarchive then writes
/// names that are UTF-8 as they are and marks those with other bytes, which pass through unchanged, by a
/// record "hdrcharset=BINARY". (Asked for once and for all, that record stands at every name, and GNU tar
/// warns of each.)
class Utf8Text {
 public:
  Utf8Text() : before_(::uselocale(utf8_locale())) {}
  ~Utf8Text() { ::uselocale(before_); }
  Utf8Text(const Utf8Text&) = delete;

 private:
  locale_t before_;
};

unsigned kind_of(protocol::FileType type) {
  switch (type) {
    case protocol::FileType::directory:
      return AE_IFDIR;
    case protocol::FileType::symlink:
      return AE_IFLNK;
    default:
      return AE_IFREG;
  }
}

}  // namespace

TarWriter::TarWriter(const TarOutput& output, std::string root_name)
    : output_(output), root_name_(std::move(root_name)), handle_(archive_write_new()) {
  archive_write_set_format_pax_restricted(handle_);
  // The end of a tar is no whole block of a tape.
  archive_write_set_bytes_in_last_block(handle_, 1);
  check(archive_write_open(handle_, this, nullptr, &TarWriter::write_some, nullptr));
}

TarWriter::~TarWriter() {
  if (!finished_) {
    // An unfinished tar stays unfinished: what is left goes nowhere.
    dropping_ = true;
    image::give_up_archive(handle_);
  }
  archive_write_free(handle_);
}

long TarWriter::write_some(archive* handle, void* self, const void* bytes, std::size_t size) {
  auto* writer = static_cast<TarWriter*>(self);
  if (writer->dropping_) return static_cast<long>(size);
  try {
    writer->output_({static_cast<const char*>(bytes), size});
    return static_cast<long>(size);
  } catch (...) {
    // An exception cannot pass through the C library.
    writer->failure_ = std::current_exception();
    archive_set_error(handle, EIO, "the output failed");
    return -1;
  }
}

void TarWriter::check(long status) {
  if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
  if (status >= ARCHIVE_OK || status == ARCHIVE_WARN) return;
  const char* text = archive_error_string(handle_);
  throw Error(ErrorCode::storage_error,
              fmt::format("Write a tar: {}", text ? printable(text, 200) : "libarchive failed"));
}

void TarWriter::header(const TreePath& path, const protocol::TreeEntry& entry) {
  std::unique_ptr<archive_entry, EntryDeleter> item(archive_entry_new());
  bool is_folder = entry.type == protocol::FileType::directory;
  auto name = path.empty() ? (is_folder ? "./" : root_name_) : "./" + path.text();
  archive_entry_set_pathname(item.get(), name.c_str());
  archive_entry_set_filetype(item.get(), kind_of(entry.type));
  archive_entry_set_perm(item.get(), entry.mode & 07777);
  archive_entry_set_uid(item.get(), entry.uid);
  archive_entry_set_gid(item.get(), entry.gid);
  archive_entry_set_mtime(item.get(), entry.mtime_s,
                          static_cast<long>(std::min(entry.mtime_ns, 999'999'999U)));
  constexpr std::uint64_t k_largest = INT64_MAX;
  bool is_file = entry.type == protocol::FileType::regular;
  if (is_file && entry.size > k_largest)
    throw Error(ErrorCode::too_large, "No tar holds a file of this size");
  archive_entry_set_size(item.get(), is_file ? static_cast<std::int64_t>(entry.size) : 0);
  if (entry.type == protocol::FileType::symlink) {
    if (entry.link_target.empty() || entry.link_target.find('\0') != std::string::npos) {
      throw Error(ErrorCode::guest_protocol, "The guest program sent a link to nothing");
    }
    archive_entry_set_symlink(item.get(), entry.link_target.c_str());
  }
  Utf8Text names;
  check(archive_write_header(handle_, item.get()));
}

void TarWriter::directory(const TreePath& path, const protocol::TreeEntry& entry) {
  header(path, entry);
}
void TarWriter::link(const TreePath& path, const protocol::TreeEntry& entry) {
  header(path, entry);
}
void TarWriter::begin_file(const TreePath& path, const protocol::TreeEntry& entry) {
  header(path, entry);
}

void TarWriter::bytes(std::string_view bytes) {
  while (!bytes.empty()) {
    auto count = archive_write_data(handle_, bytes.data(), bytes.size());
    check(count);
    if (count <= 0) throw Error(ErrorCode::storage_error, "Write a tar: nothing was taken");
    bytes.remove_prefix(static_cast<std::size_t>(count));
  }
}

void TarWriter::hole(std::uint64_t size) {
  static constexpr std::array<char, 65536> k_zeroes{};
  while (size > 0) {
    auto piece = std::min<std::uint64_t>(size, k_zeroes.size());
    bytes({k_zeroes.data(), piece});
    size -= piece;
  }
}

void TarWriter::end_file() {
  check(archive_write_finish_entry(handle_));
}

void TarWriter::finish() {
  check(archive_write_close(handle_));
  finished_ = true;
}

}  // namespace holt::machine
