// Names of models that are known, to guess what a wrong one was meant to be.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace holt {

/// The known id ("PROVIDER:NAME") nearest to `id`; nothing when none is near or `id` itself is known.
std::optional<std::string> near_model_id(std::string_view id);

}  // namespace holt
