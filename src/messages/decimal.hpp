// Decimal numbers as text: read, printed and added as Python's Decimal does it, without its context rounding.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace holt {

/// The text that Python prints for Decimal(text); nothing when that is no finite number.
std::optional<std::string> canonical_decimal(std::string_view text);

/// The sum of two canonical decimals; nothing when it has more than 100 digits.
std::optional<std::string> add_decimals(std::string_view a, std::string_view b);

}  // namespace holt
