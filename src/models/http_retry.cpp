#include "models/http_retry.hpp"

#include "holt/base/retry_after.hpp"

#include <algorithm>
#include <random>

namespace holt {
namespace {

constexpr double k_longest_wait = 300;

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

Duration retry_delay(int retry, const Headers& headers, WallTime now, double random) {
  auto asked = retry_after_seconds(headers, now);
  double seconds = asked && *asked > 0 ? *asked : back_off_seconds(retry, random);
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
