// Members of a tar, one after the other, by libarchive (ustar, PAX, GNU, old V7; sparse members).
#pragma once

#include "image/byte_source.hpp"
#include "image/metadata.hpp"

#include <cstdint>
#include <expected>
#include <optional>
#include <string>
#include <string_view>

struct archive_entry;

namespace holt::image {

/// One member as the archive has it: nothing in it has been looked up or resolved.
struct TarMember {
  std::uint64_t index = 0;  ///< from 1
  std::string path;
  EntryKind kind = EntryKind::regular;
  std::optional<std::string> hard_link;  ///< path of the entry that this is another name of
  std::string symlink;
  std::uint32_t device_major = 0;
  std::uint32_t device_minor = 0;
  std::uint64_t size = 0;  ///< apparent size that the header claims
  bool is_sparse = false;  ///< less data come than that
  Metadata metadata;
};

/// A piece of a member's data; between pieces are holes.
struct TarData {
  std::uint64_t offset = 0;
  std::string_view bytes;
};

/// Bad input is an error value with the reason in half a sentence; only the source below throws.
class TarReader {
 public:
  explicit TarReader(ByteSource& source);
  /// The next member; nothing at the end of the archive.
  std::expected<std::optional<TarMember>, std::string> next();
  /// The next piece of the present member's data; nothing at its end.
  std::expected<std::optional<TarData>, std::string> next_data();

 private:
  std::string failure();
  ArchiveFeed feed_;
  ArchiveHandle handle_;
  int open_status_;
  std::uint64_t index_ = 0;
};

}  // namespace holt::image
