// Durations as a history holds them: ISO 8601 text.
#pragma once

#include "holt/base/json.hpp"

#include <cstdint>
#include <optional>
#include <string>

namespace holt {

/// "PT1.5S", "P1DT2H", "-PT3S"; "PT0S" for nothing.
std::string iso_duration(std::int64_t microseconds);
/// Microseconds of such a text (weeks to seconds), or of a number of seconds; nothing for anything else.
std::optional<std::int64_t> parse_duration(const Json& value);

}  // namespace holt
