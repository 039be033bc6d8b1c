// From a source to an image of the store: documents, blobs (several at once), file system, names.
//
//   RegistrySource source(reference, options, cancel);
//   Image image = acquire(store, source, {.reference = reference, .platform = ...});
#pragma once

#include "holt/image/pull.hpp"
#include "image/oci/source.hpp"

namespace holt::image {

struct AcquireRequest {
  Reference reference;  ///< what the result is called; a digest in it must be that of the top document
  Platform platform;
  Limits limits;
  std::uint64_t disk_bytes = k_default_disk_bytes;
  ProgressSink progress = nullptr;
  std::optional<CancellationToken> cancel = std::nullopt;
};

/// Downloads what the store lacks, builds the file system unless it is there, and names it. Layers are
/// unpacked while later bytes still come. Throws Error DIGEST_MISMATCH that names the blob, and what the
/// source, the documents and the builder throw. After an error: no image, no name; whole blobs and the
/// beginning of one under way stay for the next try.
Image acquire(Store& store, ImageSource& source, const AcquireRequest& request);

}  // namespace holt::image
