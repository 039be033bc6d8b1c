#include "holt/base/lenient.hpp"

#include "base/float_text.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

#include <fmt/format.h>

namespace holt {
namespace {

constexpr std::size_t k_max_integer_digits = 4300;  // Python's own limit on text to integer

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

std::string_view trim(std::string_view text) {
  constexpr std::string_view k_space = " \t\n\v\f\r";
  std::size_t first = text.find_first_not_of(k_space);
  if (first == text.npos) return {};
  return text.substr(first, text.find_last_not_of(k_space) - first + 1);
}

/// Without its underscores; nothing when one is not between two digits.
std::optional<std::string> without_underscores(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '_') {
      out += text[i];
      continue;
    }
    bool between = i > 0 && i + 1 < text.size() && is_digit(text[i - 1]) && is_digit(text[i + 1]);
    if (!between) return std::nullopt;
  }
  return out;
}

/// An integer's canonical digits as a value.
Json integer_of_digits(std::string digits) {
  const char* end = digits.data() + digits.size();
  std::int64_t number = 0;
  if (std::from_chars(digits.data(), end, number).ec == std::errc()) return number;
  std::uint64_t large = 0;
  if (std::from_chars(digits.data(), end, large).ec == std::errc()) return large;
  return json_big_integer(std::move(digits));
}

std::expected<Json, LenientProblem> integer_of_text(std::string_view text) {
  std::string_view rest = trim(text);
  std::string sign;
  if (!rest.empty() && (rest.front() == '+' || rest.front() == '-')) {
    if (rest.front() == '-') sign = "-";
    rest.remove_prefix(1);
  }
  if (std::size_t point = rest.find('.'); point != rest.npos) {
    if (rest.find_first_not_of('0', point + 1) != rest.npos || point + 1 == rest.size()) {
      return std::unexpected(LenientProblem::not_parsable);
    }
    rest = rest.substr(0, point);
  }
  auto digits = without_underscores(rest);
  if (!digits || digits->empty() || !std::ranges::all_of(*digits, is_digit)) {
    return std::unexpected(LenientProblem::not_parsable);
  }
  digits->erase(0, std::min(digits->find_first_not_of('0'), digits->size() - 1));
  if (digits->size() > k_max_integer_digits) return std::unexpected(LenientProblem::too_large);
  if (*digits == "0") return Json(0);
  return integer_of_digits(sign + *digits);
}

std::expected<Json, LenientProblem> integer_of_float(double value) {
  if (!std::isfinite(value)) return std::unexpected(LenientProblem::not_finite);
  if (std::trunc(value) != value) return std::unexpected(LenientProblem::has_fraction);
  return integer_of_digits(value == 0 ? "0" : fmt::format("{:.0f}", value));
}

std::string lower_case(std::string_view text) {
  std::string out(text);
  for (char& c : out) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return out;
}

std::expected<double, LenientProblem> float_of_text(std::string_view text) {
  auto cleaned = without_underscores(trim(text));
  if (!cleaned) return std::unexpected(LenientProblem::not_parsable);
  std::string_view rest = *cleaned;
  bool negative = !rest.empty() && rest.front() == '-';
  if (negative || (!rest.empty() && rest.front() == '+')) rest.remove_prefix(1);
  double value = 0;
  std::string word = lower_case(rest);
  if (word == "inf" || word == "infinity") {
    value = std::numeric_limits<double>::infinity();
  } else if (word == "nan") {
    value = std::numeric_limits<double>::quiet_NaN();
  } else {
    auto number = rest.starts_with('-') ? std::nullopt : float_from_text(rest);
    if (!number) return std::unexpected(LenientProblem::not_parsable);
    value = *number;
  }
  return negative ? -value : value;
}

}  // namespace

std::expected<Json, LenientProblem> lenient_integer(const Json& value) {
  if (value.is_number_integer() || is_json_big_integer(value)) return value;
  if (value.is_boolean()) return Json(value.get<bool>() ? 1 : 0);
  if (value.is_number_float()) return integer_of_float(value.get<double>());
  if (value.is_string()) return integer_of_text(value.get_ref<const std::string&>());
  return std::unexpected(LenientProblem::wrong_type);
}

std::expected<double, LenientProblem> lenient_float(const Json& value) {
  if (value.is_number()) return value.get<double>();
  if (is_json_big_integer(value)) return float_of_text(json_big_integer_digits(value));
  if (value.is_boolean()) return value.get<bool>() ? 1.0 : 0.0;
  if (value.is_string()) return float_of_text(value.get_ref<const std::string&>());
  return std::unexpected(LenientProblem::wrong_type);
}

std::expected<bool, LenientProblem> lenient_boolean(const Json& value) {
  if (value.is_boolean()) return value.get<bool>();
  if (value.is_number() || is_json_big_integer(value)) {
    if (json_equal(value, 0)) return false;
    if (json_equal(value, 1)) return true;
    return std::unexpected(LenientProblem::not_parsable);
  }
  if (!value.is_string()) return std::unexpected(LenientProblem::wrong_type);
  constexpr std::array<std::string_view, 6> k_no = {"0", "off", "f", "false", "n", "no"};
  constexpr std::array<std::string_view, 6> k_yes = {"1", "on", "t", "true", "y", "yes"};
  std::string word = lower_case(value.get_ref<const std::string&>());
  if (std::ranges::find(k_no, word) != k_no.end()) return false;
  if (std::ranges::find(k_yes, word) != k_yes.end()) return true;
  return std::unexpected(LenientProblem::not_parsable);
}

}  // namespace holt
