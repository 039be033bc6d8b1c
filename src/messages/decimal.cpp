#include "messages/decimal.hpp"

#include <algorithm>
#include <charconv>
#include <cstdint>

#include <fmt/format.h>

namespace holt {
namespace {

constexpr std::size_t k_max_digits = 4300;
constexpr std::int64_t k_max_exponent = 999'999'999'999'999'999;  // Python's MAX_EMAX
constexpr std::int64_t k_max_sum_digits = 100;

/// digits * 10^exponent; digits without leading zeros, but never empty.
struct Decimal {
  bool negative = false;
  std::string digits;
  std::int64_t exponent = 0;
};

void strip_leading_zeros(std::string& digits) {
  digits.erase(0, std::min(digits.find_first_not_of('0'), digits.size() - 1));
}

std::optional<Decimal> parse(std::string_view text) {
  Decimal out;
  if (text.starts_with('-') || text.starts_with('+')) {
    out.negative = text.front() == '-';
    text.remove_prefix(1);
  }
  if (std::size_t e = text.find_first_of("eE"); e != text.npos) {
    std::string_view exponent = text.substr(e + 1);
    if (exponent.starts_with('+')) exponent.remove_prefix(1);
    auto [end, error] = std::from_chars(exponent.data(), exponent.data() + exponent.size(), out.exponent);
    if (error != std::errc() || end != exponent.data() + exponent.size()) return std::nullopt;
    if (out.exponent > k_max_exponent || out.exponent < -k_max_exponent) return std::nullopt;
    text = text.substr(0, e);
  }
  std::size_t point = text.find('.');
  out.digits = text.substr(0, point);
  if (point != text.npos) {
    out.digits += text.substr(point + 1);
    out.exponent -= static_cast<std::int64_t>(text.size() - point - 1);
  }
  bool digits_only = out.digits.find_first_not_of("0123456789") == std::string::npos;
  if (out.digits.empty() || out.digits.size() > k_max_digits || !digits_only) return std::nullopt;
  strip_leading_zeros(out.digits);
  return out;
}

/// The scientific-string rule of the General Decimal Arithmetic specification.
std::string print(const Decimal& decimal) {
  std::string sign = decimal.negative ? "-" : "";
  auto length = static_cast<std::int64_t>(decimal.digits.size());
  std::int64_t adjusted = decimal.exponent + length - 1;
  if (decimal.exponent > 0 || adjusted < -6) {
    std::string fraction = length > 1 ? "." + decimal.digits.substr(1) : "";
    return fmt::format("{}{}{}E{:+}", sign, decimal.digits.front(), fraction, adjusted);
  }
  if (decimal.exponent == 0) return sign + decimal.digits;
  std::int64_t whole = length + decimal.exponent;
  if (whole <= 0) return sign + "0." + std::string(static_cast<std::size_t>(-whole), '0') + decimal.digits;
  auto split = static_cast<std::size_t>(whole);
  return sign + decimal.digits.substr(0, split) + "." + decimal.digits.substr(split);
}

/// Both of one length and not negative; the result may be one digit longer.
std::string add_digits(const std::string& a, const std::string& b) {
  std::string out(a.size() + 1, '0');
  int carry = 0;
  for (std::size_t i = a.size(); i-- > 0;) {
    int sum = (a[i] - '0') + (b[i] - '0') + carry;
    out[i + 1] = static_cast<char>('0' + sum % 10);
    carry = sum / 10;
  }
  out[0] = static_cast<char>('0' + carry);
  return out;
}

/// a - b, both of one length, a not below b.
std::string subtract_digits(const std::string& a, const std::string& b) {
  std::string out(a.size(), '0');
  int borrow = 0;
  for (std::size_t i = a.size(); i-- > 0;) {
    int difference = a[i] - b[i] - borrow;
    borrow = difference < 0 ? 1 : 0;
    out[i] = static_cast<char>('0' + difference + 10 * borrow);
  }
  return out;
}

}  // namespace

std::optional<std::string> canonical_decimal(std::string_view text) {
  auto decimal = parse(text);
  if (!decimal) return std::nullopt;
  return print(*decimal);
}

std::optional<std::string> add_decimals(std::string_view a_text, std::string_view b_text) {
  auto a = parse(a_text);
  auto b = parse(b_text);
  if (!a || !b) return std::nullopt;
  std::int64_t exponent = std::min(a->exponent, b->exponent);
  for (Decimal* each : {&*a, &*b}) {
    std::int64_t zeros = each->exponent - exponent;
    if (zeros + static_cast<std::int64_t>(each->digits.size()) > k_max_sum_digits) return std::nullopt;
    each->digits.append(static_cast<std::size_t>(zeros), '0');
  }
  std::size_t length = std::max(a->digits.size(), b->digits.size());
  for (Decimal* each : {&*a, &*b}) each->digits.insert(0, length - each->digits.size(), '0');
  Decimal sum{.negative = a->negative, .digits = {}, .exponent = exponent};
  if (a->negative == b->negative) {
    sum.digits = add_digits(a->digits, b->digits);
  } else {
    if (a->digits < b->digits) {
      std::swap(a, b);
      sum.negative = a->negative;
    }
    sum.digits = subtract_digits(a->digits, b->digits);
  }
  strip_leading_zeros(sum.digits);
  if (sum.digits == "0") sum.negative = false;
  return print(sum);
}

}  // namespace holt
