#include "holt/base/error.hpp"
#include "image/byte_source.hpp"
#include "image/local/source_files.hpp"
#include "image/tar_header.hpp"

#include <algorithm>
#include <cerrno>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

#include <archive.h>
#include <archive_entry.h>
#include <fmt/format.h>

namespace holt::image {
namespace {

constexpr std::size_t k_block_bytes = std::size_t{64} << 10;
/// Names of layouts and saved archives are short; a longer one is not theirs.
constexpr std::size_t k_name_limit = 1024;
constexpr int k_links_followed = 8;

/// The name as a root file system would have it, so that "/index.json" is found and refused.
std::string rooted_name(std::string_view name) {
  std::string clean;
  while (!name.empty()) {
    std::size_t slash = name.find('/');
    std::string_view part = name.substr(0, slash);
    name.remove_prefix(slash == std::string_view::npos ? name.size() : slash + 1);
    if (part.empty() || part == ".") continue;
    if (part == "..") {
      std::size_t cut = clean.rfind('/');
      clean.resize(cut == std::string::npos ? 0 : cut);
    } else {
      if (!clean.empty()) clean += '/';
      clean += part;
    }
  }
  return clean;
}

std::string link_target(archive_entry* entry, std::string_view name) {
  if (const char* target = archive_entry_hardlink(entry)) return rooted_name(target);
  const char* target = archive_entry_symlink(entry);
  if (!target) return {};
  std::size_t slash = name.rfind('/');
  std::string folder(slash == std::string_view::npos ? "" : name.substr(0, slash + 1));
  return rooted_name(*target == '/' ? std::string(target) : folder + target);
}

Error unreadable(archive* handle) {
  const char* text = archive_error_string(handle);
  return {ErrorCode::image_invalid,
          fmt::format("read the archive: {}", text ? printable(text, 200) : "it cannot be read")};
}

/// Looks once more at the extended headers in front of a member: libarchive cuts a name in them at a NUL, so
/// that the archive would mean one thing here and another elsewhere.
void check_extensions(const FileSlice& tar, std::uint64_t at, std::uint64_t member) {
  auto refuse = [&](std::string_view reason) {
    throw Error(ErrorCode::image_invalid, fmt::format("member {} of the archive {}", member, reason));
  };
  while (true) {
    std::string block = read_at(tar, at, k_tar_block);
    if (block.size() < k_tar_block || !is_extension(block[k_type_offset])) return;
    auto size = tar_number(block, k_size_field);
    if (!size || *size < 0) return refuse("has a size that is none");
    auto bytes = static_cast<std::uint64_t>(*size);
    if (bytes > k_extension_bytes) refuse(fmt::format("has an extended header of {} bytes", bytes));
    at += k_tar_block;
    if (block[k_type_offset] == 'x') {
      std::string body = read_at(tar, at, static_cast<std::size_t>(bytes));
      auto records = read_pax_records(body);
      if (!records) refuse(records.error());
    }
    at += whole_blocks(bytes);
  }
}

/// Where the data of a regular member are in the tar.
ArchiveMember data_of(archive* handle, archive_entry* entry, std::uint64_t end) {
  ArchiveMember member{.size =
                           static_cast<std::uint64_t>(std::max<la_int64_t>(archive_entry_size(entry), 0))};
  if (member.size == 0) return member;
  const void* data = nullptr;
  std::size_t bytes = 0;
  la_int64_t at = 0;
  int result = archive_read_data_block(handle, &data, &bytes, &at);
  if (result != ARCHIVE_OK && result != ARCHIVE_WARN) throw unreadable(handle);
  // Bytes handed out count as read only with the next call, so here the member's data begin.
  member.offset = static_cast<std::uint64_t>(archive_filter_bytes(handle, 0));
  if (archive_entry_sparse_count(entry) > 0) {
    member.fault = "it is written with holes";
  } else if (member.size > end || member.offset > end - member.size) {
    throw Error(ErrorCode::image_invalid, fmt::format("read the archive: it ends inside '{}'",
                                                      printable(archive_entry_pathname(entry), 200)));
  }
  return member;
}

ArchiveMember member_of(archive* handle, archive_entry* entry, std::string_view name, std::uint64_t end) {
  if (!clean_member_name(name)) return {.fault = "its name is absolute or has '..' in it"};
  std::string link = link_target(entry, name);
  if (!link.empty()) return {.fault = "it is a link, and links are not followed", .link = std::move(link)};
  if (archive_entry_filetype(entry) != AE_IFREG) return {.fault = "it is no regular file"};
  return data_of(handle, entry, end);
}

}  // namespace

ArchiveFiles::ArchiveFiles(Fd tar) : tar_(std::move(tar)) {
  struct stat status{};
  if (::fstat(tar_.get(), &status) != 0 || ::lseek(tar_.get(), 0, SEEK_SET) < 0) {
    throw system_error(errno, "read the archive");
  }
  ArchiveHandle handle(archive_read_new());
  archive_read_support_format_tar(handle.get());
  if (archive_read_open_fd(handle.get(), tar_.get(), k_block_bytes) != ARCHIVE_OK)
    throw unreadable(handle.get());
  auto end = static_cast<std::uint64_t>(status.st_size);
  FileSlice whole{.file = duplicate(tar_.get()), .size = end};
  for (std::uint64_t number = 1;; ++number) {
    archive_entry* entry = nullptr;
    int result = archive_read_next_header(handle.get(), &entry);
    if (result == ARCHIVE_EOF) return;
    if (result != ARCHIVE_OK && result != ARCHIVE_WARN) throw unreadable(handle.get());
    check_extensions(whole, static_cast<std::uint64_t>(archive_read_header_position(handle.get())), number);
    const char* name = archive_entry_pathname(entry);
    if (!name) continue;
    add(rooted_name(name), member_of(handle.get(), entry, name, end));
  }
}

void ArchiveFiles::add(const std::string& name, ArchiveMember member) {
  if (name.empty() || name.size() > k_name_limit) return;
  if (members_.size() == k_archive_members && !members_.contains(name)) {
    complete_ = false;
    return;
  }
  if (members_.contains(name)) member = {.fault = "it is there twice"};
  members_[name] = std::move(member);
}

const ArchiveMember* ArchiveFiles::find(const std::string& name) const {
  auto clean = clean_member_name(name);
  if (!clean || clean->empty()) {
    throw Error(
        ErrorCode::image_invalid,
        fmt::format("read '{}' of the image: the name leads out of the archive", printable(name, 200)));
  }
  auto found = members_.find(*clean);
  if (found != members_.end()) return &found->second;
  if (!complete_) {
    throw Error(ErrorCode::limit_exceeded,
                fmt::format("read the archive: it has more than {} members", k_archive_members));
  }
  return nullptr;
}

FileSlice ArchiveFiles::slice(const std::string& name, const ArchiveMember& member) const {
  if (!member.fault.empty()) {
    throw Error(ErrorCode::image_invalid,
                fmt::format("read '{}' of the image: {}", printable(name, 200), member.fault));
  }
  return {.file = duplicate(tar_.get()), .offset = member.offset, .size = member.size};
}

std::optional<FileSlice> ArchiveFiles::open(const std::string& name) const {
  const ArchiveMember* member = find(name);
  if (!member) return std::nullopt;
  return slice(name, *member);
}

std::optional<FileSlice> ArchiveFiles::open_linked(const std::string& name) const {
  const ArchiveMember* member = find(name);
  for (int i = 0; i < k_links_followed && member && !member->link.empty(); ++i) member = find(member->link);
  if (!member) return std::nullopt;
  return slice(name, *member);
}

bool ArchiveFiles::has_below(const std::string& folder) const {
  auto next = members_.lower_bound(folder + "/");
  return next != members_.end() && next->first.starts_with(folder + "/");
}

}  // namespace holt::image
