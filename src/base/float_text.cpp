#include "base/float_text.hpp"

#include <algorithm>
#include <charconv>
#include <limits>

namespace holt {
namespace {

/// The value of a number that std::from_chars calls out of range, by where its first digit stands.
double out_of_range_value(std::string_view text) {
  bool negative = text.front() == '-';
  if (negative) text.remove_prefix(1);
  long exponent = 0;
  if (std::size_t e = text.find_first_of("eE"); e != text.npos) {
    std::string_view digits = text.substr(e + 1);
    if (digits.front() == '+') digits.remove_prefix(1);
    auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), exponent);
    if (error == std::errc::result_out_of_range) {
      exponent =
          digits.front() == '-' ? std::numeric_limits<long>::min() / 2 : std::numeric_limits<long>::max() / 2;
    }
    text = text.substr(0, e);
  }
  std::size_t point = std::min(text.find('.'), text.size());
  std::size_t first = std::min(text.find_first_of("123456789"), text.size());
  long magnitude = static_cast<long>(point) - static_cast<long>(first) + exponent;
  double value = magnitude > 0 ? std::numeric_limits<double>::infinity() : 0.0;
  return negative ? -value : value;
}

}  // namespace

std::optional<double> float_from_text(std::string_view text) {
  std::size_t first = text.starts_with('-') ? 1 : 0;
  bool number = first < text.size() && (text[first] == '.' || (text[first] >= '0' && text[first] <= '9'));
  if (!number) return std::nullopt;  // from_chars takes "inf" and "nan" too
  double value = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc::invalid_argument || end != text.data() + text.size()) return std::nullopt;
  return error == std::errc::result_out_of_range ? out_of_range_value(text) : value;
}

}  // namespace holt
