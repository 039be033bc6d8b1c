#include "image/image_builder.hpp"

#include "holt/base/error.hpp"
#include "image/tar_check.hpp"
#include "image/xattrs.hpp"

#include <array>
#include <charconv>
#include <cstring>

#include <fmt/format.h>

namespace holt::image {
namespace {

constexpr std::uint64_t k_report_bytes = std::uint64_t{8} << 20;
constexpr std::uint64_t k_report_entries = 5000;
/// A decoder of zstd with the 8 MiB that `zstd -19` asks for; what is more takes room from the names.
constexpr std::uint64_t k_usual_window_bytes = std::uint64_t{9} << 20;
constexpr std::string_view k_lost_and_found = "lost+found";

[[noreturn]] void refuse(ErrorCode code, const TarMember& member, std::string_view reason,
                         const char* hint = "") {
  throw Error(
      code,
      fmt::format("member {} of the archive, '{}', {}", member.index, printable(member.path, 200), reason),
      {.hint = hint});
}

[[noreturn]] void refuse(const Refusal& refusal, const TarMember& member) {
  refuse(refusal.code, member, refusal.reason);
}
[[noreturn]] void refuse(const std::string& reason, const TarMember& member) {
  refuse(ErrorCode::image_invalid, member, reason);
}

/// The value, or an error with the member's number and name.
template <class T, class E>
T take(std::expected<T, E> result, const TarMember& member) {
  if (!result) refuse(result.error(), member);
  if constexpr (!std::is_void_v<T>) return std::move(*result);
}

/// Of an entry that is no folder.
void check_name(const Place& place, const TarMember& member) {
  if (place.name.empty()) refuse(ErrorCode::image_invalid, member, "takes the place of the root folder");
  if (!place.directory->node && place.name == k_lost_and_found) {
    refuse(ErrorCode::image_invalid, member, "is no folder; ext4 keeps that name for one");
  }
}

Metadata valid_metadata(const TarMember& member) {
  Metadata metadata = member.metadata;
  take(keep_valid_xattrs(metadata), member);
  return metadata;
}

/// Names the member in what the file system refuses of it.
template <class Call>
auto keep(const TarMember& member, const Call& call) {
  try {
    return call();
  } catch (const Error& error) {
    if (error.code() != ErrorCode::image_invalid) throw;
    refuse(error.code(), member, fmt::format("cannot be kept: {}", error.what()));
  }
}

Ext4Writer::Uuid uuid_of(std::string_view digest) {
  Ext4Writer::Uuid uuid{};
  for (std::size_t i = 0; i < uuid.size(); ++i) {
    std::from_chars(digest.data() + 2 * i, digest.data() + 2 * i + 2, uuid[i], 16);
  }
  // Version 8, "custom", of RFC 9562.
  uuid[6] = static_cast<std::uint8_t>((uuid[6] & 0x0fU) | 0x80U);
  uuid[8] = static_cast<std::uint8_t>((uuid[8] & 0x3fU) | 0x80U);
  return uuid;
}

}  // namespace

ImageBuilder::ImageBuilder(const std::filesystem::path& ext4, BuildOptions options)
    : options_(std::move(options)), tree_(options_.limits), fs_(ext4, options_.disk_bytes) {}

void ImageBuilder::apply_layer(ByteSource& tar) {
  tree_.begin_layer();
  TarCheck checked(tar);
  if (checked.is_empty()) return;
  TarReader reader(checked);
  for (std::uint64_t number = 1;; ++number) {
    auto read = reader.next();
    if (!read) {
      throw Error(ErrorCode::image_invalid,
                  fmt::format("member {} of the archive: {}", number, read.error()));
    }
    const std::optional<TarMember>& member = *read;
    if (!member) break;
    if (++done_.entries > options_.limits.entries) {
      throw Error(ErrorCode::limit_exceeded,
                  fmt::format("the image has more than {} members", options_.limits.entries));
    }
    apply(reader, *member);
    check_memory(tar, *member);
    step();
  }
  checked.finish();
}

void ImageBuilder::apply(TarReader& reader, const TarMember& member) {
  Path path = take(parse_path(member.path, options_.limits), member);
  Marker marker = take(marker_of(path), member);
  if (marker != Marker::none) return apply_marker(marker, path, member);
  Place place = take(tree_.place(path), member);
  if (member.hard_link) {
    apply_link(member, *member.hard_link, place);
  } else if (member.kind == EntryKind::directory) {
    apply_directory(member, place);
  } else {
    apply_content(reader, member, place);
  }
}

void ImageBuilder::check_memory(const ByteSource& tar, const TarMember& member) const {
  std::uint64_t bytes = tree_.bytes() + fs_.memory();
  bytes += std::max(tar.memory(), k_usual_window_bytes) - k_usual_window_bytes;
  if (bytes <= options_.limits.tree_bytes) return;
  refuse(ErrorCode::limit_exceeded, member,
         fmt::format("brings the names of the image, with a large window of zstd, above {} bytes of memory",
                     options_.limits.tree_bytes));
}

void ImageBuilder::apply_marker(Marker marker, const Path& path, const TarMember& member) {
  if (marker == Marker::ignored) return;
  Place place = take(tree_.find_place(path), member);
  if (!place.directory) return;
  if (marker == Marker::opaque) {
    tree_.clear_lower(*place.directory);
  } else {
    place.name.remove_prefix(k_marker_prefix.size());
    tree_.white_out(place);
  }
  drop_links();
}

void ImageBuilder::apply_link(const TarMember& member, const std::string& name, const Place& place) {
  Place from = take(tree_.find_place(take(parse_path(name, options_.limits), member)), member);
  const Node* target = from.directory ? from.find() : nullptr;
  bool folder = from.directory && (from.name.empty() || (target && target->directory));
  if (folder) refuse(ErrorCode::image_invalid, member, "is a hard link to a folder");
  if (!target) {
    refuse(ErrorCode::image_invalid, member,
           fmt::format("is a hard link to '{}', which is not there", printable(name, 200)));
  }
  check_name(place, member);
  if (place.find() == target) return;
  // Copied before it goes, with the folder that it may lie in.
  EntryKind kind = target->kind;
  Ext4Writer::Inode inode = target->inode;
  std::string link = target->target ? target->target : "";
  fs_.add_link(inode);
  tree_.put(place, kind, inode, link);
  drop_links();
}

void ImageBuilder::apply_directory(const TarMember& member, const Place& place) {
  Directory* directory = place.name.empty() ? place.directory : take(tree_.put_directory(place), member);
  drop_links();
  tree_.set_metadata(*directory, valid_metadata(member));
}

void ImageBuilder::apply_content(TarReader& reader, const TarMember& member, const Place& place) {
  check_name(place, member);
  tree_.put(place, member.kind, add_content(reader, member), member.symlink);
  drop_links();
}

Ext4Writer::Inode ImageBuilder::add_content(TarReader& reader, const TarMember& member) {
  Metadata metadata = valid_metadata(member);
  switch (member.kind) {
    case EntryKind::symlink:
      return keep(member, [&] { return fs_.add_symlink(member.symlink, metadata); });
    case EntryKind::character_device:
    case EntryKind::block_device:
    case EntryKind::fifo:
      return keep(member, [&] {
        return fs_.add_special(member.kind, member.device_major, member.device_minor, metadata);
      });
    default:
      return add_file(reader, member, metadata);
  }
}

Ext4Writer::Inode ImageBuilder::add_file(TarReader& reader, const TarMember& member,
                                         const Metadata& metadata) {
  if (member.size > options_.limits.file_bytes) {
    refuse(ErrorCode::limit_exceeded, member,
           fmt::format("has {} bytes, more than {}", member.size, options_.limits.file_bytes), k_bytes_hint);
  }
  fs_.begin_file();
  missing_bytes_ = member.is_sparse ? 0 : member.size;
  while (auto data = take(reader.next_data(), member)) {
    std::uint64_t end = data->offset + data->bytes.size();
    if (end < data->offset || end > member.size) {
      refuse(ErrorCode::image_invalid, member, "has data behind its end");
    }
    done_.unpacked_bytes += data->bytes.size();
    missing_bytes_ -= std::min<std::uint64_t>(missing_bytes_, data->bytes.size());
    if (done_.unpacked_bytes > options_.limits.unpacked_bytes) {
      refuse(ErrorCode::limit_exceeded, member,
             fmt::format("brings the image above {} bytes", options_.limits.unpacked_bytes), k_bytes_hint);
    }
    keep(member, [&] { fs_.write(data->offset, data->bytes); });
    step();
  }
  missing_bytes_ = 0;
  return keep(member, [&] { return fs_.end_file(member.size, metadata); });
}

void ImageBuilder::drop_links() {
  for (Tree::Inode inode : tree_.take_dropped()) fs_.drop_link(inode);
}

void ImageBuilder::step() {
  if (options_.cancel) options_.cancel->throw_if_cancelled();
  if (!options_.progress) return;
  if (done_.unpacked_bytes - reported_bytes_ < k_report_bytes &&
      done_.entries - reported_entries_ < k_report_entries) {
    return;
  }
  reported_bytes_ = done_.unpacked_bytes;
  reported_entries_ = done_.entries;
  options_.progress(done_);
}

void ImageBuilder::add_lost_and_found() {
  Place place{&tree_.root(), k_lost_and_found};
  if (place.find()) return;
  if (auto made = tree_.put_directory(place)) tree_.set_metadata(**made, {.permissions = 0700});
}

void ImageBuilder::finish(std::string_view digest) {
  add_lost_and_found();
  fs_.finish(uuid_of(digest), tree_.root(), [this] { step(); });
  if (options_.progress) options_.progress(done_);
}

}  // namespace holt::image
