// Decimal text to double, for the JSON reader and the lenient conversions.
#pragma once

#include <optional>
#include <string_view>

namespace holt {

/// The nearest double to a decimal text with optional '-', point and exponent; infinity or zero where the
/// text is out of range. Nothing when it is no such text, or more than that. Does not depend on the locale.
std::optional<double> float_from_text(std::string_view text);

}  // namespace holt
