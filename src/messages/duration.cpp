#include "messages/duration.hpp"

#include "holt/base/lenient.hpp"

#include <array>
#include <charconv>
#include <cmath>
#include <string_view>
#include <utility>

#include <fmt/format.h>

namespace holt {
namespace {

constexpr double k_max_seconds = 86'400.0 * 999'999'999;  // Python's timedelta.max

std::optional<std::int64_t> from_seconds(double seconds) {
  if (!(std::abs(seconds) <= k_max_seconds)) return std::nullopt;
  double micros = std::round(seconds * 1e6);
  if (std::abs(micros) > 9e18) return std::nullopt;
  return static_cast<std::int64_t>(micros);
}

/// The fields between P and the end. Each unit at most once, in order.
std::optional<double> read_fields(std::string_view text) {
  constexpr std::array<std::pair<char, double>, 6> k_units = {
      {{'W', 604'800}, {'D', 86'400}, {'T', 0}, {'H', 3600}, {'M', 60}, {'S', 1}}};
  double seconds = 0;
  std::size_t unit = 0;
  bool any = false;
  while (!text.empty()) {
    if (text.front() == 'T') {
      if (unit > 2) return std::nullopt;
      unit = 3;
      text.remove_prefix(1);
      if (text.empty()) return std::nullopt;
      continue;
    }
    double number = 0;
    bool digit = text.front() >= '0' && text.front() <= '9';
    auto [end, error] =
        std::from_chars(text.data(), text.data() + text.size(), number, std::chars_format::fixed);
    text.remove_prefix(static_cast<std::size_t>(end - text.data()));
    if (!digit || error != std::errc() || text.empty()) return std::nullopt;
    std::size_t last = unit > 2 ? k_units.size() : 2;
    while (unit < last && k_units[unit].first != text.front()) ++unit;
    if (unit == last) return std::nullopt;
    seconds += number * k_units[unit++].second;
    text.remove_prefix(1);
    any = true;
  }
  if (!any) return std::nullopt;
  return seconds;
}

}  // namespace

std::string iso_duration(std::int64_t microseconds) {
  if (microseconds == 0) return "PT0S";
  bool negative = microseconds < 0;
  std::uint64_t rest =
      negative ? -static_cast<std::uint64_t>(microseconds) : static_cast<std::uint64_t>(microseconds);
  std::uint64_t micros = rest % 1'000'000;
  rest /= 1'000'000;
  std::uint64_t days = rest / 86'400;
  rest %= 86'400;
  std::string text = negative ? "-P" : "P";
  if (days > 0) text += fmt::format("{}D", days);
  if (rest == 0 && micros == 0) return text;
  text += 'T';
  if (rest / 3600 > 0) text += fmt::format("{}H", rest / 3600);
  if (rest / 60 % 60 > 0) text += fmt::format("{}M", rest / 60 % 60);
  if (rest % 60 == 0 && micros == 0) return text;
  text += fmt::format("{}", rest % 60);
  if (micros > 0) {
    std::string fraction = fmt::format(".{:06}", micros);
    text += fraction.substr(0, fraction.find_last_not_of('0') + 1);
  }
  return text + "S";
}

std::optional<std::int64_t> parse_duration(const Json& value) {
  if (value.is_number()) return from_seconds(value.get<double>());
  if (!value.is_string()) return std::nullopt;
  std::string_view text = value.get_ref<const std::string&>();
  if (auto seconds = lenient_float(value)) return from_seconds(*seconds);
  bool negative = text.starts_with('-');
  if (negative || text.starts_with('+')) text.remove_prefix(1);
  if (!text.starts_with('P')) return std::nullopt;
  auto seconds = read_fields(text.substr(1));
  if (!seconds) return std::nullopt;
  return from_seconds(negative ? -*seconds : *seconds);
}

}  // namespace holt
