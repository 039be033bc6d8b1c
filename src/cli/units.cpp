#include "cli/units.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <optional>
#include <utility>

#include <fmt/format.h>

namespace holt::cli {
namespace {

constexpr double k_longest_seconds = 100.0 * 365 * 24 * 3600;
constexpr double k_largest_bytes = 1ULL << 60;

/// A plain decimal number at the front of `text`, taken off it. No sign, no exponent, no "inf".
std::optional<double> take_number(std::string_view& text) {
  std::size_t length = std::min(text.find_first_not_of("0123456789."), text.size());
  double value = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + length, value, std::chars_format::fixed);
  if (length == 0 || error != std::errc{} || end != text.data() + length) return std::nullopt;
  text.remove_prefix(length);
  return value;
}

/// A number that std::from_chars reads whole, exponents too ("1e9").
std::optional<double> whole_number(std::string_view text) {
  double value = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::optional<double> seconds_of(std::string_view unit) {
  constexpr std::array<std::pair<std::string_view, double>, 5> k_units{
      {{"ms", 0.001}, {"s", 1}, {"m", 60}, {"h", 3600}, {"d", 86400}}};
  for (auto [name, seconds] : k_units) {
    if (name == unit) return seconds;
  }
  return std::nullopt;
}

std::optional<double> bytes_of(std::string_view suffix) {
  static constexpr std::string_view k_letters = "BKMGT";
  char letter = suffix.front() >= 'a' ? static_cast<char>(suffix.front() - 'a' + 'A') : suffix.front();
  auto power = k_letters.find(letter);
  if (power == std::string_view::npos) return std::nullopt;
  auto rest = suffix.substr(1);
  bool known = rest.empty() || (power > 0 && (rest == "B" || rest == "b" || rest == "iB" || rest == "ib"));
  if (!known) return std::nullopt;
  return std::pow(1024.0, static_cast<double>(power));
}

/// The sum of parts such as 1h30m; nothing when it is not of that form.
std::optional<double> sum_of_parts(std::string_view text) {
  double total = 0;
  while (!text.empty()) {
    auto number = take_number(text);
    auto length = std::min(text.find_first_of("0123456789."), text.size());
    auto unit = seconds_of(text.substr(0, length));
    if (!number || !unit) return std::nullopt;
    total += *number * *unit;
    text.remove_prefix(length);
  }
  return total;
}

}  // namespace

std::expected<std::uint64_t, std::string> parse_size(std::string_view text, std::uint64_t unit) {
  auto rest = text;
  auto number = take_number(rest);
  std::optional<double> factor = static_cast<double>(unit);
  if (number && !rest.empty()) factor = bytes_of(rest);
  if (!number || !factor) return std::unexpected("is no size such as 512M or 2G");
  double bytes = *number * *factor;
  if (bytes > k_largest_bytes) return std::unexpected("is too large");
  return static_cast<std::uint64_t>(bytes);
}

std::expected<Duration, std::string> parse_duration(std::string_view text) {
  auto seconds = whole_number(text);
  if (!seconds && !text.empty()) seconds = sum_of_parts(text);
  if (!seconds) return std::unexpected("is no duration such as 30s, 5m or 1h30m");
  if (!(*seconds > 0)) return std::unexpected("is not above zero");
  if (*seconds > k_longest_seconds) return std::unexpected("is longer than 100 years");
  return std::chrono::duration_cast<Duration>(std::chrono::duration<double>(*seconds));
}

std::string show_size(std::uint64_t bytes) {
  static constexpr std::array<std::string_view, 5> k_units{"B", "KiB", "MiB", "GiB", "TiB"};
  double value = static_cast<double>(bytes);
  std::size_t unit = 0;
  while (value >= 1024 && unit + 1 < k_units.size()) {
    value /= 1024;
    ++unit;
  }
  if (unit == 0) return fmt::format("{} B", bytes);
  return fmt::format("{:.1f} {}", value, k_units[unit]);
}

std::string show_duration(Duration duration) {
  double ms = std::chrono::duration<double, std::milli>(duration).count();
  if (ms < 10) return fmt::format("{:.1f} ms", ms);
  if (ms < 1000) return fmt::format("{:.0f} ms", ms);
  return fmt::format("{:.1f} s", ms / 1000);
}

}  // namespace holt::cli
