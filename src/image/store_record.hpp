// image.json and the references' files: reading and writing what the store keeps beside the ext4 files.
#pragma once

#include "holt/image/store.hpp"

#include <optional>
#include <string>
#include <string_view>

namespace holt::image {

/// The OCI image configuration of an image with one layer, as compact JSON: its digest is the image's.
std::string oci_config(const ImageConfig& config, std::string_view layer_digest);

/// image.json without `reference` and `ext4`.
std::string write_image_record(const Image& image);
/// Nothing for a damaged record; digests in it are checked by is_digest().
std::optional<Image> read_image_record(std::string_view text);

/// What a name stands for. Digests are checked by is_digest().
struct ReferenceRecord {
  std::string reference;
  std::string digest;         ///< of the image
  std::string manifest = {};  ///< of the manifest it came by; empty for an import without one
  std::string top = {};       ///< of the index or manifest that the source has under the name; may be empty
};
std::string write_reference_record(const ReferenceRecord& record);
std::optional<ReferenceRecord> read_reference_record(std::string_view text);

}  // namespace holt::image
