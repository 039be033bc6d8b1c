#include "holt/base/retry_after.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <ctime>

namespace holt {
namespace {

std::optional<double> number(const std::string& text) {
  double value = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(value)) return std::nullopt;
  return value;
}

/// Names of days and months are English in the C locale, which holt does not leave.
std::optional<double> http_date(const std::string& text) {
  for (const char* form :
       {"%a, %d %b %Y %H:%M:%S GMT", "%A, %d-%b-%y %H:%M:%S GMT", "%a %b %e %H:%M:%S %Y"}) {
    std::tm parts{};
    const char* end = ::strptime(text.c_str(), form, &parts);
    if (end != nullptr && *end == '\0') return static_cast<double>(::timegm(&parts));
  }
  return std::nullopt;
}

const std::string* find(const std::map<std::string, std::string>& headers, const std::string& name) {
  auto it = headers.find(name);
  return it == headers.end() ? nullptr : &it->second;
}

}  // namespace

std::optional<double> retry_after_seconds(const std::map<std::string, std::string>& headers, WallTime now) {
  if (const auto* text = find(headers, "retry-after-ms")) {
    if (auto value = number(*text)) return *value / 1000;
  }
  const auto* text = find(headers, "retry-after");
  if (text == nullptr) return std::nullopt;
  if (auto value = number(*text)) return value;
  auto date = http_date(*text);
  if (!date) return std::nullopt;
  return std::max(0.0, *date - std::chrono::duration<double>(now.time_since_epoch()).count());
}

double back_off_seconds(int retry, double random) {
  constexpr double k_first = 0.5;
  constexpr double k_longest = 8;
  constexpr double k_jitter = 0.25;
  return std::min(k_first * std::exp2(std::min(retry, 10)), k_longest) * (1 - k_jitter * random);
}

}  // namespace holt
