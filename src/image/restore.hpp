// Images whose blobs are here and whose file system or record is not.
#pragma once

#include "holt/base/cancellation.hpp"
#include "holt/image/limits.hpp"
#include "holt/image/pull.hpp"
#include "holt/image/store.hpp"

#include <optional>
#include <string_view>

namespace holt::image {

struct RestoreOptions {
  Limits limits = {};
  ProgressSink progress = nullptr;
  std::optional<CancellationToken> cancel = std::nullopt;
};

/// Builds the image of a reference again from its blobs, asking no registry. Throws Error NOT_FOUND that
/// names what is missing, DIGEST_MISMATCH, and what acquire() throws.
Image restore(Store& store, std::string_view reference, const RestoreOptions& options = {});

}  // namespace holt::image
