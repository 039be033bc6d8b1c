// Lenient conversion of JSON values to numbers and booleans, as Pydantic's core does it for JSON input.
//
//   auto n = holt::lenient_integer("7");       // 7
//   auto b = holt::lenient_boolean("yes");     // true
//   auto f = holt::lenient_integer(1.5);       // LenientProblem::has_fraction
//
// Depends on base/json.hpp only.
#pragma once

#include "holt/base/json.hpp"

#include <expected>

namespace holt {

/// Why a value cannot be converted.
enum class LenientProblem {
  wrong_type,    ///< no number, text or boolean that could mean one
  not_parsable,  ///< a text that means none; a number that is neither 0 nor 1, for a boolean
  has_fraction,  ///< a number with a fraction, for an integer
  not_finite,    ///< NaN or an infinity, for an integer
  too_large,     ///< an integer of more than 4,300 digits
};

/// An integer of any size: from an integer, a boolean, a float without fraction, or a decimal text ("7", " +7
/// ", "1_000", "7.0").
std::expected<Json, LenientProblem> lenient_integer(const Json& value);

/// A float: from any number, a boolean, or a text as Rust and Python read it (".5", "1e5", "inf", "nan").
std::expected<double, LenientProblem> lenient_float(const Json& value);

/// A boolean: from a boolean, the numbers 0 and 1, or a text (0, off, f, false, n, no, 1, on, t, true, y,
/// yes, in any case).
std::expected<bool, LenientProblem> lenient_boolean(const Json& value);

}  // namespace holt
