#include "holt/base/time.hpp"
#include "holt/messages/values.hpp"

#include <charconv>
#include <chrono>
#include <cmath>

#include <fmt/format.h>

namespace holt {
namespace {

using std::chrono::microseconds;
using std::chrono::sys_days;

constexpr std::int64_t k_million = 1'000'000;
// Numbers above are milliseconds, as the reference reads them (the year 2603 in seconds, 1970-08 in
// milliseconds).
constexpr double k_milliseconds_above = 2e10;
constexpr std::int64_t k_first_second = -11'676'096'000;  // 1600-01-01
constexpr std::int64_t k_last_second = 253'402'300'799;   // 9999-12-31T23:59:59

/// Takes a text apart from the front. Every call returns false and takes nothing where the text does not fit.
class Scanner {
 public:
  explicit Scanner(std::string_view text) : text_(text) {}

  bool at_end() const { return text_.empty(); }
  bool next_is(std::string_view characters) const {
    return !text_.empty() && characters.find(text_.front()) != characters.npos;
  }
  bool take(std::string_view characters) {
    if (!next_is(characters)) return false;
    text_.remove_prefix(1);
    return true;
  }
  bool number(std::size_t digits, int& value) {
    if (text_.size() < digits) return false;
    auto [end, error] = std::from_chars(text_.data(), text_.data() + digits, value);
    if (error != std::errc() || end != text_.data() + digits || text_.front() == '-') return false;
    text_.remove_prefix(digits);
    return true;
  }
  /// A run of digits; six count, more are cut off.
  bool fraction(int& micros) {
    std::size_t length = std::min(text_.find_first_not_of("0123456789"), text_.size());
    if (length == 0) return false;
    micros = 0;
    for (std::size_t i = 0; i < 6; ++i) micros = micros * 10 + (i < length ? text_[i] - '0' : 0);
    text_.remove_prefix(length);
    return true;
  }

 private:
  std::string_view text_;
};

std::optional<sys_days> read_date(Scanner& text) {
  int year = 0;
  int month = 0;
  int day = 0;
  bool shape = text.number(4, year) && text.take("-") && text.number(2, month) && text.take("-") &&
               text.number(2, day);
  if (!shape || year == 0) return std::nullopt;
  std::chrono::year_month_day date{std::chrono::year(year), std::chrono::month(static_cast<unsigned>(month)),
                                   std::chrono::day(static_cast<unsigned>(day))};
  if (!date.ok()) return std::nullopt;
  return sys_days(date);
}

std::optional<microseconds> read_time(Scanner& text) {
  int hour = 0;
  int minute = 0;
  int second = 0;
  int micros = 0;
  if (!text.number(2, hour) || !text.take(":") || !text.number(2, minute)) return std::nullopt;
  if (text.take(":")) {
    if (!text.number(2, second)) return std::nullopt;
    if (text.take(".,") && !text.fraction(micros)) return std::nullopt;
  }
  if (hour > 23 || minute > 59 || second > 59) return std::nullopt;
  return std::chrono::hours(hour) + std::chrono::minutes(minute) + std::chrono::seconds(second) +
         microseconds(micros);
}

/// The offset at the end, in minutes. The outer optional is empty when the text does not fit.
std::optional<std::optional<int>> read_offset(Scanner& text) {
  if (text.at_end()) return std::optional<int>();
  if (text.take("Zz")) return std::optional<int>(0);
  int sign = text.next_is("-") ? -1 : 1;
  int hours = 0;
  int minutes = 0;
  if (!text.take("+-") || !text.number(2, hours)) return std::nullopt;
  text.take(":");
  if (!text.number(2, minutes) || hours > 23 || minutes > 59) return std::nullopt;
  return std::optional<int>(sign * (hours * 60 + minutes));
}

std::optional<Timestamp> read_rfc3339(std::string_view string) {
  Scanner text(string);
  auto date = read_date(text);
  if (!date) return std::nullopt;
  std::int64_t local = microseconds(date->time_since_epoch()).count();
  if (text.at_end()) return Timestamp{.microseconds = local, .offset_minutes = std::nullopt};
  if (!text.take("Tt ")) return std::nullopt;
  auto time = read_time(text);
  if (!time) return std::nullopt;
  auto offset = read_offset(text);
  if (!offset || !text.at_end()) return std::nullopt;
  local += time->count();
  return Timestamp{.microseconds = local - offset->value_or(0) * 60 * k_million, .offset_minutes = *offset};
}

std::optional<Timestamp> from_seconds(std::int64_t seconds, std::int64_t micros) {
  if (seconds < k_first_second || seconds > k_last_second) return std::nullopt;
  return Timestamp{.microseconds = seconds * k_million + micros};
}

std::optional<Timestamp> from_integer(std::int64_t number) {
  auto watershed = static_cast<std::int64_t>(k_milliseconds_above);
  if (number >= -watershed && number <= watershed) return from_seconds(number, 0);
  std::int64_t seconds = number / 1000 - (number % 1000 < 0 ? 1 : 0);
  return from_seconds(seconds, (number - seconds * 1000) * 1000);
}

std::optional<Timestamp> from_float(double number) {
  if (!std::isfinite(number)) return std::nullopt;
  if (std::abs(number) > k_milliseconds_above) number /= 1000;
  double whole = std::floor(number);
  if (std::abs(whole) > 1e12) return std::nullopt;
  auto micros = static_cast<std::int64_t>(std::round((number - whole) * 1e6));
  return from_seconds(static_cast<std::int64_t>(whole), micros);
}

/// A text that holds nothing but a number.
std::optional<Timestamp> read_number(std::string_view text) {
  if (text.starts_with('+')) text.remove_prefix(1);
  if (text.empty() || text.find_first_not_of("0123456789.-") != text.npos) return std::nullopt;
  const char* end = text.data() + text.size();
  std::int64_t integer = 0;
  if (auto result = std::from_chars(text.data(), end, integer); result.ptr == end) {
    return result.ec == std::errc() ? from_integer(integer) : std::nullopt;
  }
  double number = 0;
  auto [stop, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc() || stop != end) return std::nullopt;
  return from_float(number);
}

}  // namespace

Timestamp Timestamp::now() {
  return {.microseconds = wall_now().time_since_epoch().count()};
}

std::string to_string(const Timestamp& timestamp) {
  int offset = timestamp.offset_minutes.value_or(0);
  std::chrono::sys_time<microseconds> local{microseconds(timestamp.microseconds + offset * 60 * k_million)};
  auto day = std::chrono::floor<std::chrono::days>(local);
  std::chrono::year_month_day date(day);
  std::chrono::hh_mm_ss<microseconds> time(local - day);
  std::string text = fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}", static_cast<int>(date.year()),
                                 static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()),
                                 time.hours().count(), time.minutes().count(), time.seconds().count());
  if (time.subseconds().count() != 0) text += fmt::format(".{:06}", time.subseconds().count());
  if (!timestamp.offset_minutes) return text;
  if (offset == 0) return text + "Z";
  int minutes = std::abs(offset);
  return text + fmt::format("{}{:02}:{:02}", offset < 0 ? '-' : '+', minutes / 60, minutes % 60);
}

std::optional<Timestamp> parse_timestamp(const Json& value) {
  if (value.is_string()) {
    const auto& text = value.get_ref<const std::string&>();
    auto timestamp = read_rfc3339(text);
    return timestamp ? timestamp : read_number(text);
  }
  if (value.is_number_float()) return from_float(value.get<double>());
  if (value.is_number_unsigned() && value.get<std::uint64_t>() > INT64_MAX) return std::nullopt;
  if (value.is_number_integer()) return from_integer(value.get<std::int64_t>());
  return std::nullopt;
}

}  // namespace holt
