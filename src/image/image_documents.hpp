// From the name of an image to its manifest and configuration: indexes walked, everything checked.
#pragma once

#include "holt/image/platform.hpp"
#include "holt/image/reference.hpp"
#include "image/oci/source.hpp"

#include <string>

namespace holt::image {

/// All bytes are what the digests say.
struct ImageDocuments {
  std::string top_digest;       ///< of the document that the source has under the name
  std::string manifest_digest;  ///< the same, or that of one of its entries
  std::string manifest_bytes;
  Manifest manifest;
  std::string config_bytes;
  ConfigDocument config;  ///< with as many diff_ids as the manifest has layers
};

/// Throws Error DIGEST_MISMATCH that names the document, IMAGE_INVALID, LIMIT_EXCEEDED, NOT_FOUND when there
/// is none for the platform, and what the source throws.
ImageDocuments read_documents(ImageSource& source, const Reference& reference, const Platform& platform);

}  // namespace holt::image
