// What is in a sparse file, in a digest that does not depend on where the host keeps holes.
#pragma once

#include "holt/base/cancellation.hpp"

#include <filesystem>
#include <optional>
#include <string>

namespace holt::image {

/// "sha256:" and the digest over the size, and over offset and bytes of each piece of 64 KiB that is not all
/// zeros; numbers as 8 bytes, little-endian. Reads only what is no hole: 1 s for 1 GB or so. Throws Error
/// CANCELLED, NOT_FOUND, STORAGE_ERROR.
std::string content_digest(const std::filesystem::path& file,
                           const std::optional<CancellationToken>& cancel = std::nullopt);

}  // namespace holt::image
