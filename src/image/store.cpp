#include "holt/image/store.hpp"

#include "holt/base/error.hpp"
#include "holt/base/log.hpp"
#include "image/blob_needs.hpp"
#include "image/entries.hpp"
#include "image/staging.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <set>
#include <utility>

#include <fmt/format.h>

namespace holt::image {
namespace fs = std::filesystem;

Store::Store(const Directories& directories) : folder_(directories.data / "images") {}

std::optional<Image> Store::find(std::string_view reference) const {
  Folders folders{folder_};
  auto record = look_up(folders, reference);
  if (!record) return std::nullopt;
  auto image = load_entry(folders, record->digest);
  if (image) image->reference = record->reference;
  return image;
}

Image Store::resolve(std::string_view reference) const {
  auto image = find(reference);
  if (!image) throw image_not_found(Folders{folder_}, reference);
  return std::move(*image);
}

std::vector<Image> Store::list() const {
  Folders folders{folder_};
  std::vector<Image> images;
  std::set<std::string> unnamed = read_digests(folders);
  for (const ReferenceRecord& record : read_references(folders)) {
    unnamed.erase(record.digest);
    auto image = load_entry(folders, record.digest);
    if (!image) {
      logger("holt.image")->warn("the files of the image {} are missing or damaged", record.reference);
      continue;
    }
    image->reference = record.reference;
    images.push_back(std::move(*image));
  }
  for (const std::string& digest : unnamed) {
    if (auto image = load_entry(folders, digest)) images.push_back(std::move(*image));
  }
  return images;
}

FileLock Store::pin(const Image& image, Deadline deadline) const {
  Folders folders{folder_};
  FileLock lock = lock_entry(folders, image.digest, deadline);
  if (!load_entry(folders, image.digest)) throw image_not_found(folders, image.reference);
  return lock;
}

void Store::remove(std::string_view reference, const RemoveOptions& options) {
  Folders folders{folder_};
  auto record = look_up(folders, reference);
  if (!record) throw image_not_found(folders, reference);
  FileLock lock = lock_entry(folders, record->digest, Deadline::after(k_lock_wait));
  auto references = read_references(folders);
  std::erase_if(references, [&](const ReferenceRecord& other) { return other.digest != record->digest; });
  bool by_digest = record->reference == record->digest;
  bool last = by_digest || references.size() <= 1;
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
  if (!last) return;
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
  free_blobs(folders, blobs);
}

}  // namespace holt::image
