// Room on the host's disk: asked before much is written, and told when it was not enough.
#pragma once

#include "holt/base/error.hpp"

#include <cstdint>
#include <filesystem>
#include <string_view>

namespace holt::image {

/// Throws Error STORAGE_FULL, with what is needed and what there is, when the file system of `folder` has
/// less than `bytes` free. `what` is named in the message: "the image a:1".
void require_space(const std::filesystem::path& folder, std::uint64_t bytes, std::string_view what);

struct SpaceNeed {
  std::filesystem::path folder;  ///< the one that is named
  std::filesystem::path file;    ///< half written; what it has counts as free, since it goes
  std::uint64_t bytes = 0;       ///< that it would have had at least
  std::string_view what;         ///< as above
};
/// The same for STORAGE_FULL amid the writing of a file: `full` with what was needed and what there was. As
/// it is where there is more room than that, and only a quota ended.
Error with_space_need(const Error& full, const SpaceNeed& need);

}  // namespace holt::image
