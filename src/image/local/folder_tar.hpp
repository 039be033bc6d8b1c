// A folder as a tar, packed while it is read.
#pragma once

#include "holt/base/cancellation.hpp"
#include "holt/base/fd.hpp"
#include "image/byte_source.hpp"

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

struct archive_entry_linkresolver;

namespace holt::image {

/// The tree below a folder, in the order of the names, with owners, modes, times in seconds, hard links and
/// extended attributes. Links are packed, not followed; sockets are left out; other file systems mounted in
/// it are not entered. Not thread-safe. Throws Error PERMISSION_DENIED that names what cannot be read,
/// IMAGE_INVALID for a file that becomes shorter meanwhile, STORAGE_ERROR, CANCELLED.
class FolderTar final : public ByteSource {
 public:
  explicit FolderTar(std::filesystem::path folder, std::optional<CancellationToken> cancel = std::nullopt);
  ~FolderTar() override;
  FolderTar(const FolderTar&) = delete;
  FolderTar& operator=(const FolderTar&) = delete;
  std::string_view read() override;

 private:
  /// A folder on the way down and its names that are still to come, the next one last.
  struct Level {
    std::filesystem::path path;  ///< from the root
    std::vector<std::string> names;
  };

  void step();
  void pack(const std::filesystem::path& name);
  void pack_data();
  void enter(const std::filesystem::path& folder);
  void finish();
  Error failure(const std::string& action) const;
  static long collect(archive* writer, void* self, const void* bytes, std::size_t size);

  std::filesystem::path root_;
  std::optional<CancellationToken> cancel_;
  ArchiveHandle disk_;
  std::unique_ptr<archive, int (*)(archive*)> writer_;
  std::unique_ptr<archive_entry_linkresolver, void (*)(archive_entry_linkresolver*)> links_;
  std::uint64_t device_ = 0;  ///< of the root
  std::vector<Level> levels_;
  Fd file_;                     ///< the file whose data are being packed
  std::filesystem::path name_;  ///< its path
  std::uint64_t left_ = 0;      ///< bytes of it that are still to come
  std::string piece_;
  std::string packed_;
  std::string given_;
  bool finished_ = false;
};

}  // namespace holt::image
