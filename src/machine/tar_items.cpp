#include "machine/tar_items.hpp"

#include "holt/base/time.hpp"
#include "image/byte_source.hpp"
#include "image/tar_reader.hpp"
#include "machine/host_tree.hpp"

#include <algorithm>
#include <optional>
#include <set>
#include <string>

#include <fmt/format.h>

namespace holt::machine {

using namespace protocol;

namespace {

// Folders are remembered, to make those that a tar leaves out.
constexpr std::size_t k_most_folder_bytes = std::size_t{64} << 20;

class InputSource final : public image::ByteSource {
 public:
  explicit InputSource(const TarInput& input) : input_(input) {}
  std::string_view read() override { return input_(); }

 private:
  const TarInput& input_;
};

/// A member's name as a path below the target: a leading "/" and "." components fall away. Nothing for names
/// that lead out.
std::optional<std::string> relative_path(std::string_view name) {
  std::string path;
  while (!name.empty()) {
    auto end = name.find('/');
    auto component = name.substr(0, end);
    name.remove_prefix(end == std::string_view::npos ? name.size() : end + 1);
    if (component.empty() || component == ".") continue;
    if (!path.empty()) path += '/';
    path += component;
  }
  if (!TreePath::from(path)) return std::nullopt;
  return path;
}

class TarSender {
 public:
  TarSender(const TarInput& tar, TreeTarget& target, CopyLog& log)
      : source_(tar),
        plain_(source_, image::Compressions::layers),
        reader_(plain_),
        target_(target),
        log_(log) {}

  void send() {
    while (auto member = next_member()) take(*member);
    make_folders("");
  }

 private:
  [[noreturn]] static void bad_tar(const std::string& reason) {
    throw Error(ErrorCode::image_invalid, fmt::format("The tar is damaged: {}", reason));
  }

  std::optional<image::TarMember> next_member() {
    auto member = reader_.next();
    if (!member) bad_tar(member.error());
    return std::move(*member);
  }

  void take(const image::TarMember& member) {
    auto path = relative_path(member.path);
    if (!path) return log_.failed(member.path, "is no name of a file below the target");
    auto entry = describe(member, *path);
    if (!entry) return;
    if (path->empty() && entry->type != protocol::FileType::directory) {
      return log_.failed(member.path, "stands for the target itself");
    }
    if (!path->empty()) make_folders(*path);
    if (entry->type == protocol::FileType::directory && !remember(*path)) return;
    target_.entry(*entry);
    if (entry->type == protocol::FileType::regular && entry->hard_link.empty()) send_data(member);
  }

  /// Nothing for what is not copied.
  std::optional<TreeEntry> describe(const image::TarMember& member, const std::string& path) {
    TreeEntry entry{.path = path,
                    .size = member.size,
                    .mode = member.metadata.permissions,
                    .uid = member.metadata.uid,
                    .gid = member.metadata.gid,
                    .mtime_s = member.metadata.mtime_seconds,
                    .mtime_ns = member.metadata.mtime_nanoseconds,
                    .link_target = member.symlink};
    if (member.hard_link) {
      auto target = relative_path(*member.hard_link);
      if (!target || target->empty()) {
        log_.failed(member.path, "is another name of something outside of the target");
        return std::nullopt;
      }
      entry.hard_link = *target;
      return entry;
    }
    switch (member.kind) {
      case image::EntryKind::regular:
        // A sparse member does not say so before its data.
        entry.holes = true;
        return entry;
      case image::EntryKind::directory:
        entry.type = protocol::FileType::directory;
        return entry;
      case image::EntryKind::symlink:
        entry.type = protocol::FileType::symlink;
        return entry;
      default:
        log_.skipped(member.path, "is no file, folder or link");
        return std::nullopt;
    }
  }

  bool remember(const std::string& folder) {
    if (!folders_.insert(folder).second) return false;
    folder_bytes_ += folder.size();
    if (folder_bytes_ > k_most_folder_bytes) {
      throw Error(ErrorCode::limit_exceeded,
                  "The folders of the tar have names of more than 64 MiB together");
    }
    return true;
  }

  /// The target and the folders above `path`, where no member has made them.
  void make_folders(const std::string& path) {
    for (std::size_t end = 0; end != std::string::npos;) {
      auto folder = path.substr(0, end);
      if (remember(folder)) {
        auto [seconds, rest] = split_time(std::chrono::nanoseconds(wall_now().time_since_epoch()).count());
        target_.entry({.path = folder,
                       .type = protocol::FileType::directory,
                       .mode = 0755,
                       .mtime_s = seconds,
                       .mtime_ns = rest});
      }
      end = path.find('/', end == 0 ? 0 : end + 1);
    }
  }

  void send_data(const image::TarMember& member) {
    std::uint64_t at = 0;
    while (true) {
      auto data = reader_.next_data();
      if (!data) bad_tar(data.error());
      auto piece = data->value_or(image::TarData{.offset = member.size, .bytes = {}});
      if (piece.offset < at || piece.bytes.size() > member.size - std::min(piece.offset, member.size)) {
        bad_tar(fmt::format("the data of '{}' do not fit its size", printable(member.path, 200)));
      }
      if (piece.offset > at) target_.hole(piece.offset - at);
      if (!piece.bytes.empty()) target_.bytes(piece.bytes);
      at = piece.offset + piece.bytes.size();
      if (!data->has_value()) return;
    }
  }

  InputSource source_;
  image::DecompressedSource plain_;
  image::TarReader reader_;
  TreeTarget& target_;
  CopyLog& log_;
  std::set<std::string> folders_;
  std::size_t folder_bytes_ = 0;
};

}  // namespace

void send_tar(const TarInput& tar, TreeTarget& target, CopyLog& log) {
  TarSender(tar, target, log).send();
}

}  // namespace holt::machine
