#include "models/http_retry.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <random>

#include <curl/curl.h>

namespace holt {
namespace {

constexpr double k_longest_wait = 300;

std::optional<double> number(std::string_view text) {
  double value = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(value)) return std::nullopt;
  return value;
}

const std::string* find(const Headers& headers, const std::string& name) {
  auto it = headers.find(name);
  return it == headers.end() ? nullptr : &it->second;
}

double chance(const RetryClock& clock) {
  if (clock.random) return clock.random();
  std::random_device device;
  return std::uniform_real_distribution<double>(0, 1)(device);
}

}  // namespace

bool should_retry(const HttpHead& head) {
  if (const auto* word = find(head.headers, "x-should-retry")) {
    if (*word == "true") return true;
    if (*word == "false") return false;
  }
  return head.status == 408 || head.status == 409 || head.status == 429 || head.status >= 500;
}

std::optional<double> retry_after_seconds(const Headers& headers, WallTime now) {
  if (const auto* text = find(headers, "retry-after-ms")) {
    if (auto value = number(*text)) return *value / 1000;
  }
  const auto* text = find(headers, "retry-after");
  if (!text) return std::nullopt;
  if (auto value = number(*text)) return value;
  auto date = curl_getdate(text->c_str(), nullptr);
  if (date == -1) return std::nullopt;
  auto now_seconds = std::chrono::duration<double>(now.time_since_epoch()).count();
  return std::max(0.0, static_cast<double>(date) - now_seconds);
}

Duration retry_delay(int retry, const Headers& headers, WallTime now, double random) {
  auto asked = retry_after_seconds(headers, now);
  double seconds = asked && *asked > 0
                       ? *asked
                       : std::min(0.5 * std::exp2(std::min(retry, 10)), 8.0) * (1 - 0.25 * random);
  return std::chrono::duration_cast<Duration>(
      std::chrono::duration<double>(std::min(seconds, k_longest_wait)));
}

Task<void> with_retries(const RetryClock& clock, RetryOptions options,
                        std::function<Task<std::optional<HttpHead>>()> attempt) {
  for (int tried = 0;; ++tried) {
    Headers headers;
    bool last = tried >= options.max_retries;
    try {
      auto refused = co_await attempt();
      if (!refused || last || !should_retry(*refused)) co_return;
      headers = std::move(refused->headers);
    } catch (const HttpTransportError& error) {
      if (last || error.kind() == HttpTransportError::Kind::deadline) throw;
    }
    auto delay = retry_delay(tried, headers, clock.now(), chance(clock));
    auto left = options.deadline.left();
    co_await clock.sleep(std::min(left, delay));
    if (left <= delay) {
      throw HttpTransportError("The request did not end in time", HttpTransportError::Kind::deadline,
                               ConnectionPhase::read);
    }
  }
}

}  // namespace holt
