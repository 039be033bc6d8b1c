// Where things are in the image store's folder (store.hpp shows it whole).
#pragma once

#include "holt/base/cancellation.hpp"
#include "holt/base/deadline.hpp"
#include "holt/base/files.hpp"

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

namespace holt::image {

/// The 64 digits of a digest, the only foreign text that becomes a file name. Throws InvalidArgument for what
/// is_digest() refuses.
std::string digest_digits(std::string_view digest);

inline constexpr std::string_view k_build_lock = "build-";
inline constexpr std::string_view k_blob_lock = "blob-";

struct Folders {
  std::filesystem::path images;

  std::filesystem::path entries() const { return images / "entries"; }
  std::filesystem::path entry(std::string_view digest) const { return entries() / digest_digits(digest); }
  std::filesystem::path references() const { return images / "references"; }
  /// References hold '/' and may be longer than a file name, so the file is named after their digest.
  std::filesystem::path reference(std::string_view canonical) const;
  std::filesystem::path blobs() const { return images / "blobs" / "sha256"; }
  std::filesystem::path partial_blobs() const { return images / "blobs" / "partial"; }
  std::filesystem::path locks() const { return images / "locks"; }
  std::filesystem::path entry_lock(std::string_view digest) const;
  std::filesystem::path build_lock(std::string_view digest) const;
  std::filesystem::path blob_lock(std::string_view digest) const;
  std::filesystem::path references_lock() const { return locks() / "references.lock"; }
  std::filesystem::path staging() const { return images / "staging"; }
};

/// Locks of the store, whose files prune() takes away: one that is held is the file of its name. Folders are
/// made when they are missing.
///
/// Nothing when another holds it.
std::optional<FileLock> try_lock(const std::filesystem::path& file);
/// Waits until nobody else holds it. Throws Error TIMEOUT.
FileLock wait_for_lock(const std::filesystem::path& file, Deadline deadline);
/// The same, however long that takes. Throws Error CANCELLED.
FileLock wait_for_lock(const std::filesystem::path& file, const CancellationToken& cancel);

/// Whether the file that is locked still has a name: another may have taken it away before the lock was had.
bool has_name(const FileLock& lock);

/// Renames a file or folder that is whole to its name, for good: the folder of `to` is made when missing and
/// synced. A file or an empty folder that stands there is replaced.
void move_into_place(const std::filesystem::path& from, const std::filesystem::path& to);

}  // namespace holt::image
