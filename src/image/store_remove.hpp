// Taking images out of the store.
#pragma once

#include "holt/image/store.hpp"
#include "image/blob_needs.hpp"
#include "image/folders.hpp"

#include <string_view>

namespace holt::image {

/// Store::remove, with what came free of blobs.
FreedBlobs remove_image(const Folders& folders, std::string_view reference, const RemoveOptions& options);

}  // namespace holt::image
