// Layers in, one ext4 file out.
//
//   ImageBuilder builder(path, {.limits = limits});
//   builder.apply_layer(tar_stream);
//   builder.finish(digest);
#pragma once

#include "holt/image/store.hpp"
#include "image/byte_source.hpp"
#include "image/ext4_writer.hpp"
#include "image/path.hpp"
#include "image/tar_reader.hpp"
#include "image/tree.hpp"

#include <algorithm>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace holt::image {

struct BuildOptions {
  Limits limits = {};
  std::uint64_t disk_bytes = k_default_disk_bytes;
  std::function<void(const Progress&)> progress = nullptr;
  std::optional<CancellationToken> cancel = std::nullopt;
};

/// Merges layers, lowest first, into a file system. Errors name the member by number and path. Not
/// thread-safe.
class ImageBuilder {
 public:
  ImageBuilder(const std::filesystem::path& ext4, BuildOptions options);
  /// Reads a plain tar to the end of its archive; what stands behind that is left in the source. A whiteout
  /// in it acts on earlier layers only. A stream without bytes is a layer without members, as in umoci.
  /// Throws Error IMAGE_INVALID, LIMIT_EXCEEDED, CANCELLED and what Ext4Writer and the source throw; then no
  /// more can be done with the builder.
  void apply_layer(ByteSource& tar);
  /// Writes what is left. `digest` (64 hexadecimal digits) identifies the content: file system identifiers
  /// come from it.
  void finish(std::string_view digest);
  /// Bytes of file data that the image has at least, as far as is known: those that came, and what the file
  /// being written still lacks, or the `unread` bytes of its tar where that is more. Also after a failure.
  std::uint64_t known_bytes(std::uint64_t unread = 0) const {
    return done_.unpacked_bytes + std::max(missing_bytes_, unread);
  }

 private:
  void apply(TarReader& reader, const TarMember& member);
  void check_memory(const ByteSource& tar, const TarMember& member) const;
  void apply_marker(Marker marker, const Path& path, const TarMember& member);
  void apply_link(const TarMember& member, const std::string& name, const Place& place);
  void apply_directory(const TarMember& member, const Place& place);
  void apply_content(TarReader& reader, const TarMember& member, const Place& place);
  Ext4Writer::Inode add_content(TarReader& reader, const TarMember& member);
  Ext4Writer::Inode add_file(TarReader& reader, const TarMember& member, const Metadata& metadata);
  void add_lost_and_found();
  void drop_links();
  void step();

  BuildOptions options_;
  Tree tree_;
  Ext4Writer fs_;
  Progress done_;
  std::uint64_t missing_bytes_ = 0;  ///< of the file being written
  std::uint64_t reported_bytes_ = 0;
  std::uint64_t reported_entries_ = 0;
};

}  // namespace holt::image
