#include "cli/signal_names.hpp"

#include <charconv>
#include <csignal>
#include <cstring>

namespace holt::cli {
namespace {

constexpr int k_first_real_time = 34;
constexpr int k_last = 64;

std::optional<int> whole_number(std::string_view text) {
  int number = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (text.empty() || error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

/// What stands behind "RTMIN" or "RTMAX": nothing, or the sign and a number.
std::optional<int> offset(std::string_view text, char sign) {
  if (text.empty()) return 0;
  if (text.front() != sign || text.size() < 2 || text[1] < '0' || text[1] > '9') return std::nullopt;
  return whole_number(text.substr(1));
}

std::optional<int> real_time_signal(std::string_view name) {
  if (name.starts_with("RTMIN")) {
    auto from_first = offset(name.substr(5), '+');
    if (from_first && *from_first <= k_last - k_first_real_time) return k_first_real_time + *from_first;
  } else if (name.starts_with("RTMAX")) {
    auto from_last = offset(name.substr(5), '-');
    if (from_last && *from_last <= k_last - k_first_real_time) return k_last - *from_last;
  }
  return std::nullopt;
}

}  // namespace

std::optional<int> signal_number(std::string_view text) {
  if (auto number = whole_number(text)) {
    return *number >= 1 && *number <= k_last ? number : std::nullopt;
  }
  auto name = text.starts_with("SIG") ? text.substr(3) : text;
  for (int candidate = 1; candidate < NSIG; ++candidate) {
    const char* known = ::sigabbrev_np(candidate);
    if (known != nullptr && name == known) return candidate;
  }
  return real_time_signal(name);
}

}  // namespace holt::cli
