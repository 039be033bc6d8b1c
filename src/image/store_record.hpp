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
/// Nothing for a damaged record.
std::optional<Image> read_image_record(std::string_view text);

struct ReferenceRecord {
  std::string reference;
  std::string digest;
};
std::string write_reference_record(const ReferenceRecord& record);
std::optional<ReferenceRecord> read_reference_record(std::string_view text);

}  // namespace holt::image
