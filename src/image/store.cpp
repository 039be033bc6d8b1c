#include "holt/image/store.hpp"

#include "holt/base/error.hpp"
#include "holt/base/log.hpp"
#include "image/entries.hpp"
#include "image/store_remove.hpp"

#include <set>
#include <utility>

namespace holt::image {

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
  remove_image(Folders{folder_}, reference, options);
}

}  // namespace holt::image
