#include "image/store_remove.hpp"

#include "holt/base/error.hpp"
#include "holt/base/files.hpp"
#include "image/entries.hpp"
#include "image/staging.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <optional>

#include <fmt/format.h>

namespace holt::image {
namespace fs = std::filesystem;

FreedBlobs remove_image(const Folders& folders, std::string_view reference, const RemoveOptions& options) {
  auto record = look_up(folders, reference);
  if (!record) throw image_not_found(folders, reference);
  FileLock lock = lock_entry(folders, record->digest, Deadline::after(k_lock_wait));
  std::optional<FileLock> names(lock_references(folders));
  auto references = read_references(folders);
  std::erase_if(references, [&](const ReferenceRecord& other) { return other.digest != record->digest; });
  bool by_digest = record->reference == record->digest;
  bool named = std::ranges::any_of(
      references, [&](const ReferenceRecord& other) { return other.reference == record->reference; });
  if (!by_digest && !named) {
    throw Error(ErrorCode::not_found,
                fmt::format("remove the image '{}': another process removed or moved that name meanwhile",
                            record->reference),
                {.subject = record->reference});
  }
  bool last = by_digest || references.size() == 1;
  // A damaged one can be removed too: its digest is all that a machine's record has of it.
  Image image = read_entry(folders, record->digest).value_or(Image());
  image.digest = record->digest;
  image.reference = record->reference;
  if (last && options.in_use && options.in_use(image)) {
    throw Error(ErrorCode::conflict,
                fmt::format("remove the image '{}': a machine still stands on it", image.reference),
                {.subject = image.reference, .hint = "Remove its machines first; holt ls -a shows them."});
  }
  for (const ReferenceRecord& other : references) {
    if (by_digest || other.reference == record->reference) fs::remove(folders.reference(other.reference));
  }
  names.reset();
  if (!last) return {};
  {
    // Renamed away first: a half-removed entry is never under its name.
    Staging staging(folders.staging());
    fs::path gone = staging.path() / "removed";
    if (::rename(folders.entry(image.digest).c_str(), gone.c_str()) != 0 && errno != ENOENT)
      throw system_error(errno, "remove the image", image.reference);
  }
  std::vector<std::string> blobs = image.layers;
  blobs.push_back(image.digest);
  if (!image.manifest_digest.empty()) blobs.push_back(image.manifest_digest);
  return free_blobs(folders, blobs);
}

}  // namespace holt::image
