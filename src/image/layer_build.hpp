// The file system of an image, of layers that may still be coming in.
#pragma once

#include "holt/base/cancellation.hpp"
#include "holt/image/limits.hpp"
#include "image/image_documents.hpp"
#include "image/layer_fetches.hpp"
#include "image/layer_progress.hpp"

#include <cstdint>
#include <filesystem>
#include <string>

namespace holt::image {

/// Bytes of headers that a tar may have beside the file data it may have: a bound for streams of members
/// without data.
std::uint64_t header_budget(const Limits& limits);

struct LayerBuildRequest {
  std::string name;              ///< of the image, for messages
  std::filesystem::path images;  ///< Store::folder()
  std::filesystem::path ext4;    ///< to be made; what stands there is replaced
  const ImageDocuments& documents;
  std::string image_digest;
  Limits limits;
  std::uint64_t disk_bytes = 0;
};

/// Applies the layers in order as their bytes come, and begins again when bytes that it has used are taken
/// back. When it returns, every layer is what its digest, size and diff_id say. Throws Error DIGEST_MISMATCH
/// that names the layer, and what LayerFetches and ImageBuilder throw.
void build_layers(const LayerBuildRequest& request, LayerFetches& fetches, LayerProgressReporter& progress,
                  const CancellationToken& stop);

}  // namespace holt::image
