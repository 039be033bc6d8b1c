// Where things are in the image store's folder (store.hpp shows it whole).
#pragma once

#include "holt/base/cancellation.hpp"
#include "holt/base/files.hpp"

#include <filesystem>
#include <string>
#include <string_view>

namespace holt::image {

/// The 64 digits of a digest, the only foreign text that becomes a file name. Throws InvalidArgument for what
/// is_digest() refuses.
std::string digest_digits(std::string_view digest);

struct Folders {
  std::filesystem::path images;

  std::filesystem::path entries() const { return images / "entries"; }
  std::filesystem::path entry(std::string_view digest) const { return entries() / digest_digits(digest); }
  std::filesystem::path references() const { return images / "references"; }
  /// References hold '/' and may be longer than a file name, so the file is named after their digest.
  std::filesystem::path reference(std::string_view canonical) const;
  std::filesystem::path blobs() const { return images / "blobs" / "sha256"; }
  std::filesystem::path partial_blobs() const { return images / "blobs" / "partial"; }
  std::filesystem::path entry_lock(std::string_view digest) const;
  std::filesystem::path build_lock(std::string_view digest) const;
  std::filesystem::path blob_lock(std::string_view digest) const;
  std::filesystem::path references_lock() const { return images / "locks" / "references.lock"; }
  std::filesystem::path staging() const { return images / "staging"; }
};

/// Waits until nobody else holds a lock, however long that takes. Throws Error CANCELLED.
FileLock wait_for_lock(const std::filesystem::path& file, const CancellationToken& cancel);

/// Renames a file or folder that is whole to its name, for good: the folder of `to` is made when missing and
/// synced. A file or an empty folder that stands there is replaced.
void move_into_place(const std::filesystem::path& from, const std::filesystem::path& to);

}  // namespace holt::image
