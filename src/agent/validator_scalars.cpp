#include "agent/pattern.hpp"
#include "agent/validator.hpp"
#include "holt/base/encoding.hpp"
#include "holt/base/lenient.hpp"

#include <cmath>

#include <fmt/format.h>

namespace holt::detail {
namespace {

/// Limits print as a model would write them: 1 for 1.0.
std::string print_number(const Json& number) {
  if (!number.is_number_float()) return dump_json(number);
  auto integer = lenient_integer(number);
  return dump_json(integer ? *integer : number);
}

/// -1, 0 or 1, exactly for integers of 64 bits.
int compare(const Json& a, const Json& b) {
  auto fits = [](const Json& n) {
    return n.is_number_integer() && (!n.is_number_unsigned() || n.get<std::uint64_t>() <= INT64_MAX);
  };
  if (fits(a) && fits(b)) {
    auto x = a.get<std::int64_t>();
    auto y = b.get<std::int64_t>();
    return x < y ? -1 : x > y ? 1 : 0;
  }
  double x = lenient_float(a).value_or(0);
  double y = lenient_float(b).value_or(0);
  return x < y ? -1 : x > y ? 1 : 0;
}

bool is_multiple(const Json& value, const Json& step) {
  if (value.is_number_integer() && step.is_number_integer()) {
    auto divisor = step.get<std::int64_t>();
    if (divisor == 0 || divisor == -1) return true;
    if (value.is_number_unsigned() && divisor > 0) {
      return value.get<std::uint64_t>() % static_cast<std::uint64_t>(divisor) == 0;
    }
    return value.get<std::int64_t>() % divisor == 0;
  }
  double x = lenient_float(value).value_or(0);
  double y = lenient_float(step).value_or(1);
  if (y == 0) return true;
  double rest = std::fabs(std::fmod(x, y));
  double tolerance = std::fabs(x) / 1e9;  // as the reference: 0.3 is a multiple of 0.1
  return rest <= tolerance || std::fabs(std::fabs(y) - rest) <= tolerance;
}

const Json* limit(const Json& schema, const char* keyword) {
  auto found = schema.find(keyword);
  return found != schema.end() && found->is_number() ? &*found : nullptr;
}

/// The first limit that a number breaks, in the reference's order.
std::optional<Outcome> broken_limit(const Json& schema, const Json& number, const Json& input) {
  bool nan = number.is_number_float() && std::isnan(number.get<double>());
  if (auto* step = limit(schema, "multipleOf"); step && !is_multiple(number, *step)) {
    return failure("multiple_of", "Expected a multiple of " + print_number(*step), input);
  }
  if (auto* high = limit(schema, "maximum"); high && (nan || compare(number, *high) > 0)) {
    return failure("less_than_equal", fmt::format("Expected {} or less", print_number(*high)), input);
  }
  if (auto* high = limit(schema, "exclusiveMaximum"); high && (nan || compare(number, *high) >= 0)) {
    return failure("less_than", "Expected less than " + print_number(*high), input);
  }
  if (auto* low = limit(schema, "minimum"); low && (nan || compare(number, *low) < 0)) {
    return failure("greater_than_equal", fmt::format("Expected {} or more", print_number(*low)), input);
  }
  if (auto* low = limit(schema, "exclusiveMinimum"); low && (nan || compare(number, *low) <= 0)) {
    return failure("greater_than", "Expected more than " + print_number(*low), input);
  }
  return std::nullopt;
}

Outcome integer_failure(LenientProblem problem, const Json& input) {
  switch (problem) {
    case LenientProblem::not_parsable:
      return failure("int_parsing", "Expected an integer, but this text is none", input);
    case LenientProblem::has_fraction:
      return failure("int_from_float", "Expected an integer, but this number has a fraction", input);
    case LenientProblem::not_finite:
      return failure("finite_number", "Expected a finite number", input);
    case LenientProblem::too_large:
      return failure("int_parsing_size", "Expected an integer of at most 4300 digits", input);
    case LenientProblem::wrong_type:
      break;
  }
  return failure("int_type", "Expected an integer", input);
}

std::optional<std::size_t> size_limit(const Json& schema, const char* keyword) {
  auto found = schema.find(keyword);
  if (found == schema.end()) return std::nullopt;
  auto size = lenient_integer(*found);
  if (!size || !size->is_number_integer() || compare(*size, 0) < 0) return std::nullopt;
  return size->get<std::size_t>();
}

/// A literal as the sentence lists it: texts in single quotes.
std::string print_literal(const Json& value) {
  return value.is_string() ? fmt::format("'{}'", value.get_ref<const std::string&>()) : dump_json(value);
}

}  // namespace

Outcome success(Json value, Exactness exactness) {
  return {.value = std::move(value), .errors = {}, .exactness = exactness, .fields_set = std::nullopt};
}

Outcome failure(std::string type, std::string message, const Json& input) {
  Outcome outcome;
  outcome.errors.push_back({.type = std::move(type), .msg = std::move(message), .input = input});
  return outcome;
}

Outcome check_integer(const Json& schema, const Json& value) {
  auto integer = lenient_integer(value);
  if (!integer) return integer_failure(integer.error(), value);
  if (auto broken = broken_limit(schema, *integer, value)) return std::move(*broken);
  bool exact = value.is_number_integer() || is_json_big_integer(value);
  return success(std::move(*integer), exact ? Exactness::exact : Exactness::lax);
}

Outcome check_number(const Json& schema, const Json& value) {
  auto number = lenient_float(value);
  if (!number && number.error() == LenientProblem::not_parsable) {
    return failure("float_parsing", "Expected a number, but this text is none", value);
  }
  if (!number) return failure("float_type", "Expected a number", value);
  if (auto broken = broken_limit(schema, *number, value)) return std::move(*broken);
  bool integer = value.is_number_integer() || is_json_big_integer(value);
  return success(*number, value.is_number_float() ? Exactness::exact
                          : integer               ? Exactness::strict
                                                  : Exactness::lax);
}

Outcome check_boolean(const Json& value) {
  auto boolean = lenient_boolean(value);
  if (boolean) return success(*boolean, value.is_boolean() ? Exactness::exact : Exactness::lax);
  if (boolean.error() == LenientProblem::not_parsable) {
    return failure("bool_parsing", "Expected a boolean, but this means neither true nor false", value);
  }
  return failure("bool_type", "Expected a boolean", value);
}

Outcome check_string(const Json& schema, const Json& value) {
  if (!value.is_string()) return failure("string_type", "Expected a string", value);
  const auto& text = value.get_ref<const std::string&>();
  auto min = size_limit(schema, "minLength");
  auto max = size_limit(schema, "maxLength");
  std::size_t length = min || max ? utf8_length(text) : 0;
  if (min && length < *min) {
    return failure("string_too_short", fmt::format("Expected a length of {} or more", *min), value);
  }
  if (max && length > *max) {
    return failure("string_too_long", fmt::format("Expected a length of {} or less", *max), value);
  }
  if (auto pattern = schema.find("pattern"); pattern != schema.end() && pattern->is_string()) {
    const auto& regex = pattern->get_ref<const std::string&>();
    if (!contains_match(regex, text)) {
      return failure("string_pattern_mismatch", fmt::format("Expected a match for the pattern '{}'", regex),
                     value);
    }
  }
  return success(value);
}

Outcome check_null(const Json& value) {
  return value.is_null() ? success(value) : failure("none_required", "Expected null", value);
}

Outcome check_literal(const Json& values, const Json& value) {
  std::string list;
  for (std::size_t i = 0; i < values.size(); ++i) {
    bool same_type = values[i].is_boolean() == value.is_boolean();
    if (same_type && json_equal(values[i], value)) return success(values[i]);
    if (i > 0) list += i + 1 == values.size() ? " or " : ", ";
    list += print_literal(values[i]);
  }
  return failure("literal_error", "Expected " + list, value);
}

std::optional<ErrorItem> check_size(const Json& schema, const Json& value, const char* min_key,
                                    const char* max_key) {
  if (auto min = size_limit(schema, min_key); min && value.size() < *min) {
    return ErrorItem{.type = "too_short",
                     .msg = fmt::format("Expected {} or more items, not {}", *min, value.size()),
                     .input = value};
  }
  if (auto max = size_limit(schema, max_key); max && value.size() > *max) {
    return ErrorItem{.type = "too_long",
                     .msg = fmt::format("Expected {} or fewer items, not {}", *max, value.size()),
                     .input = value};
  }
  return std::nullopt;
}

}  // namespace holt::detail
