#include "image/image_builder.hpp"

#include "holt/base/error.hpp"
#include "image/xattrs.hpp"

#include <array>
#include <charconv>
#include <cstring>

#include <fmt/format.h>

namespace holt::image {
namespace {

constexpr std::uint64_t k_report_bytes = std::uint64_t{8} << 20;
constexpr std::uint64_t k_report_entries = 5000;

[[noreturn]] void refuse(ErrorCode code, const TarMember& member, std::string_view reason) {
  throw Error(code, fmt::format("member {} of the archive, '{}', {}", member.index,
                                printable(member.path, 200), reason));
}

/// The value, or IMAGE_INVALID with the member's number and name.
template <class T>
T take(std::expected<T, std::string> result, const TarMember& member) {
  if (!result) refuse(ErrorCode::image_invalid, member, result.error());
  if constexpr (!std::is_void_v<T>) return std::move(*result);
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
  TarReader reader(tar);
  while (std::optional<TarMember> member = next_member(reader)) {
    take(keep_valid_xattrs(member->metadata), *member);
    apply(reader, *member);
    report();
  }
}

std::optional<TarMember> ImageBuilder::next_member(TarReader& reader) {
  auto member = reader.next();
  if (!member) {
    throw Error(ErrorCode::image_invalid,
                fmt::format("member {} of the archive: {}", done_.entries + 1, member.error()));
  }
  if (*member && ++done_.entries > options_.limits.entries) {
    throw Error(ErrorCode::limit_exceeded,
                fmt::format("the image has more than {} members", options_.limits.entries));
  }
  return std::move(*member);
}

void ImageBuilder::apply(TarReader& reader, const TarMember& member) {
  Place place = take(tree_.place(member.path), member);
  if (member.hard_link) return apply_link(member, *member.hard_link, place);
  if (member.kind == EntryKind::directory) return apply_directory(member, place);
  if (place.name.empty()) refuse(ErrorCode::image_invalid, member, "takes the place of the root folder");
  if (place.directory == &tree_.root() && place.name == "lost+found") {
    refuse(ErrorCode::image_invalid, member, "is no folder; ext4 keeps that name for one");
  }
  remove(place);
  Node node{
      .inode = add_content(reader, member), .kind = member.kind, .directory = nullptr, .target = nullptr};
  if (member.kind == EntryKind::symlink) node.target = std::make_unique<std::string>(member.symlink);
  place.directory->children.insert_or_assign(place.name, std::move(node));
}

void ImageBuilder::apply_link(const TarMember& member, const std::string& name, const Place& place) {
  Node* target = take(tree_.find(name), member);
  if (!target) {
    refuse(ErrorCode::image_invalid, member,
           fmt::format("is a hard link to '{}', which is not there", printable(name, 200)));
  }
  if (target->directory) refuse(ErrorCode::image_invalid, member, "is a hard link to a folder");
  if (place.name.empty()) refuse(ErrorCode::image_invalid, member, "takes the place of the root folder");
  Node* present = place.find();
  if (present == target) return;
  Node node{.inode = target->inode, .kind = target->kind, .directory = nullptr, .target = nullptr};
  if (target->target) node.target = std::make_unique<std::string>(*target->target);
  fs_.add_link(node.inode);
  remove(place);
  place.directory->children.insert_or_assign(place.name, std::move(node));
}

void ImageBuilder::apply_directory(const TarMember& member, const Place& place) {
  if (place.name.empty()) {
    tree_.root().metadata = member.metadata;
    return;
  }
  Node* present = place.find();
  if (present && !present->directory) {
    remove(place);
    present = nullptr;
  }
  Directory* directory = present ? present->directory.get() : take(tree_.make_directory(place), member);
  directory->metadata = member.metadata;
}

Ext4Writer::Inode ImageBuilder::add_content(TarReader& reader, const TarMember& member) {
  try {
    switch (member.kind) {
      case EntryKind::symlink:
        return fs_.add_symlink(member.symlink, member.metadata);
      case EntryKind::character_device:
      case EntryKind::block_device:
      case EntryKind::fifo:
        return fs_.add_special(member.kind, member.device_major, member.device_minor, member.metadata);
      default:
        return add_file(reader, member);
    }
  } catch (const Error& error) {
    if (error.code() != ErrorCode::image_invalid) throw;
    refuse(error.code(), member, fmt::format("cannot be kept: {}", error.what()));
  }
}

Ext4Writer::Inode ImageBuilder::add_file(TarReader& reader, const TarMember& member) {
  if (member.size > options_.limits.file_bytes) {
    refuse(ErrorCode::limit_exceeded, member, fmt::format("has {} bytes", member.size));
  }
  fs_.begin_file();
  while (auto data = take(reader.next_data(), member)) {
    done_.unpacked_bytes += data->bytes.size();
    if (done_.unpacked_bytes > options_.limits.unpacked_bytes) {
      refuse(ErrorCode::limit_exceeded, member,
             fmt::format("brings the image above {} bytes", options_.limits.unpacked_bytes));
    }
    fs_.write(data->offset, data->bytes);
    report();
  }
  return fs_.end_file(member.size, member.metadata);
}

void ImageBuilder::remove(const Place& place) {
  Node* node = place.find();
  if (!node) return;
  drop(*node);
  place.directory->children.erase(place.name);
}

void ImageBuilder::drop(Node& node) {
  if (!node.directory) return fs_.drop_link(node.inode);
  for (auto& [name, child] : node.directory->children) drop(child);
}

void ImageBuilder::report() {
  if (!options_.progress) return;
  if (done_.unpacked_bytes - reported_bytes_ < k_report_bytes &&
      done_.entries - reported_entries_ < k_report_entries) {
    return;
  }
  reported_bytes_ = done_.unpacked_bytes;
  reported_entries_ = done_.entries;
  options_.progress(done_);
}

void ImageBuilder::finish(std::string_view digest) {
  fs_.finish(uuid_of(digest), tree_.root());
  if (options_.progress) options_.progress(done_);
}

}  // namespace holt::image
