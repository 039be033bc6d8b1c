// Smaller file systems of an image, beside the one it was built with (Store::with_disk_size).
#pragma once

#include "holt/base/cancellation.hpp"

#include <filesystem>
#include <optional>
#include <vector>

namespace holt::image {

/// Those in an entry's folder that have other bytes than they were made with.
std::vector<std::filesystem::path> damaged_sizes(const std::filesystem::path& entry,
                                                 const std::optional<CancellationToken>& cancel);

/// Removes them. The next start of a machine that stands on one makes the same again.
void drop_damaged_sizes(const std::filesystem::path& entry, const std::optional<CancellationToken>& cancel);

}  // namespace holt::image
