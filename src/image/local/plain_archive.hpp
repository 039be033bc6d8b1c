// Archives as plain tars in regular files, which can be read in any order.
#pragma once

#include "holt/base/cancellation.hpp"
#include "holt/base/fd.hpp"
#include "holt/image/limits.hpp"

#include <filesystem>
#include <optional>
#include <string>

namespace holt::image {

/// `fd` itself (a duplicate) when it is a regular file, not compressed and at its beginning; otherwise its
/// bytes, read to the end and decompressed, in a file without a name below `staging`. Throws Error USAGE for
/// a device or socket, LIMIT_EXCEEDED above the budget of `limits`, IMAGE_INVALID for damaged compression,
/// NOT_SUPPORTED for others than gzip and zstd, STORAGE_FULL, CANCELLED.
Fd plain_archive(int fd, const std::filesystem::path& staging, const Limits& limits,
                 const std::optional<CancellationToken>& cancel);

/// Throws Error for a file that is no tar: USAGE for a Dockerfile, IMAGE_INVALID else, each with what helps.
/// `title` names it in the sentence. Quiet for a tar.
void check_is_tar(const Fd& file, const std::string& title);

/// What to do with a Dockerfile, for errors.
inline constexpr const char* k_dockerfile_hint =
    "holt does not build Dockerfiles; build with docker or buildah, then: docker save IMAGE | holt image "
    "import -";

}  // namespace holt::image
