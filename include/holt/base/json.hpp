// Reading and writing JSON as Pydantic's core does it (docs/reference.md, "JSON"):
//
//   auto value = holt::parse_json(R"({"n": 1e400, "big": 123456789012345678901})");
//   if (!value) std::cerr << value.error().text();        // e.g. no `:` here (line 1, column 5)
//   std::string text = holt::dump_json(*value);           // {"n":null,"big":123456789012345678901}
//
// Differences to nlohmann's own reader and writer: NaN and infinities are read (also 1e400 and the bare words
// NaN, Infinity, -Infinity) and written as null; integers over 64 bits keep their digits; floats are written
// with the shortest digits that round-trip, in fixed form for decimal exponents from -5 to 15; nothing above
// U+007F is escaped; the last of equal keys counts, at the place of the first; nesting over 201 is refused.
#pragma once

#include "holt/base/json_fwd.hpp"

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <nlohmann/json.hpp>

namespace holt {

/// Why a text is not JSON. `reason` is one of the sentences of docs/reference.md, "JSON".
struct JsonError {
  std::string reason;
  std::size_t line = 1;    ///< from 1
  std::size_t column = 0;  ///< place of the offending byte from 1; where the text ends, the bytes read

  /// "REASON (line L, column C)"
  std::string text() const;
};

/// Parses a whole text. Never throws on bad input; memory is bounded by the text's length.
std::expected<Json, JsonError> parse_json(std::string_view text);

/// How dump_json writes.
struct JsonStyle {
  bool spaces = false;      ///< one space after each ',' and ':'
  bool ascii_only = false;  ///< everything above U+007F as \uxxxx
  int indent = 0;           ///< above 0: pretty, with so many spaces a level
};

/// Compact JSON by default. Strings must be UTF-8; invalid bytes are written as U+FFFD.
std::string dump_json(const Json& value, JsonStyle style = {});

/// Equality of values without regard to the order of keys; 1 equals 1.0.
bool json_equal(const Json& a, const Json& b);

/// An integer of any size, kept by its decimal digits (with a leading '-' where negative).
Json json_big_integer(std::string digits);
bool is_json_big_integer(const Json& value);
/// The digits of a big integer. Precondition: is_json_big_integer(value).
std::string json_big_integer_digits(const Json& value);

/// The value where it is an integer that fits T, else nothing: 1.0, 1e400 and "1" are none. A number from
/// outside is read with this and not with get<T>(), which is undefined for floats beyond T and cuts integers.
template <std::integral T>
std::optional<T> json_integer(const Json& value) {
  if (value.is_number_unsigned()) {
    auto number = value.get<std::uint64_t>();
    if (std::in_range<T>(number)) return static_cast<T>(number);
  } else if (value.is_number_integer()) {
    auto number = value.get<std::int64_t>();
    if (std::in_range<T>(number)) return static_cast<T>(number);
  }
  return std::nullopt;
}

/// As json_integer, and a float's whole part: 2.9 is 2. Nothing for NaN, infinities and what is beyond 64
/// bits.
std::optional<std::int64_t> json_whole_part(const Json& value);

/// A float as the writer prints it: shortest digits that round-trip, "1.0", "1e-7", "null" for NaN and
/// infinities.
std::string json_number(double value);

}  // namespace holt
