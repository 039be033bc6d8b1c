// Room on the host's disk, asked before much is written.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string_view>

namespace holt::image {

/// Throws Error STORAGE_FULL, with what is needed and what there is, when the file system of `folder` has
/// less than `bytes` free. `what` is named in the message: "the image a:1".
void require_space(const std::filesystem::path& folder, std::uint64_t bytes, std::string_view what);

}  // namespace holt::image
