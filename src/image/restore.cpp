#include "image/restore.hpp"

#include "holt/base/error.hpp"
#include "image/acquire.hpp"
#include "image/blobs.hpp"
#include "image/entries.hpp"

#include <fmt/format.h>

namespace holt::image {
namespace {

/// The store's own blobs, for a build that finds all its layers there.
class StoredSource final : public ImageSource {
 public:
  StoredSource(const Folders& folders, std::string reference, std::string manifest)
      : blobs_(folders.images), reference_(std::move(reference)), manifest_(std::move(manifest)) {}

  std::string name() const override { return reference_; }
  RawDocument top() override { return {.bytes = read(manifest_, k_manifest_bytes), .media_type = {}}; }
  RawDocument document(const Descriptor& descriptor, std::size_t limit) override {
    return {.bytes = read(descriptor.digest, limit), .media_type = {}};
  }
  void fetch(const Descriptor& descriptor, BlobSink& /*sink*/) override { throw missing(descriptor.digest); }

 private:
  std::string read(const std::string& digest, std::size_t limit) const {
    auto bytes = blobs_.read(digest, limit);
    if (!bytes) throw missing(digest);
    return std::move(*bytes);
  }
  Error missing(const std::string& digest) const {
    return {ErrorCode::not_found,
            fmt::format("build the image '{}' again: its blob {} is missing or damaged", reference_, digest),
            {.subject = reference_, .hint = fmt::format("holt pull {} fetches it again.", reference_)}};
  }

  BlobStore blobs_;
  std::string reference_;
  std::string manifest_;
};

}  // namespace

Image restore(Store& store, std::string_view reference, const RestoreOptions& options) {
  Folders folders{store.folder()};
  auto record = look_up(folders, reference);
  if (!record) throw image_not_found(folders, reference);
  auto entry = read_entry(folders, record->digest);
  const std::string& manifest =
      entry && !entry->manifest_digest.empty() ? entry->manifest_digest : record->manifest;
  if (manifest.empty()) throw image_not_found(folders, reference);

  StoredSource source(folders, record->reference, manifest);
  AcquireRequest request{
      .reference = {}, .limits = options.limits, .progress = options.progress, .cancel = options.cancel};
  if (auto config = BlobStore(store.folder()).read(record->digest, k_config_bytes))
    request.platform = parse_config(*config).platform;
  Image image = acquire(store, source, request);
  image.reference = record->reference;
  return image;
}

}  // namespace holt::image
