// From a source to an image of the store: documents, blobs (several at once), file system, names.
//
//   AcquireRequest request{.reference = reference, .cancel = cancel};
//   RegistrySource source(reference, options, request.stop);
//   Image image = acquire(store, source, request);
#pragma once

#include "holt/image/pull.hpp"
#include "image/oci/source.hpp"

namespace holt::image {

struct AcquireRequest {
  Reference reference;  ///< what the result is called, "" for no name; a digest in it must be that of the top
                        ///< document
  Platform platform = Platform::of_machines();
  Limits limits = {};
  std::uint64_t disk_bytes = k_default_disk_bytes;  ///< an image that is there keeps its own
  ProgressSink progress = nullptr;
  std::optional<CancellationToken> cancel = std::nullopt;
  /// Cancelled together with `cancel`, and when one of several fetches has failed: the source's waits should
  /// end at it.
  CancellationToken stop = {};
};

/// Downloads what the store lacks, builds the file system unless it is there, and names it. Layers are
/// unpacked while later bytes still come; of several that want the same image one builds and the others wait
/// for it. What is there already is read against its digests first, and replaced when it is damaged. Throws
/// Error DIGEST_MISMATCH that names the blob, CONFLICT when a damaged file system that machines may stand on
/// cannot be made the same again, and what the source, the documents and the builder throw. After an error:
/// no image, no name; whole blobs and the beginning of one under way stay for the next try, but for
/// STORAGE_FULL, after which nothing stays.
Image acquire(Store& store, ImageSource& source, const AcquireRequest& request);

}  // namespace holt::image
