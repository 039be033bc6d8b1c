// When a failed exchange is tried again, and after which wait.
// Source: the retry rules of Anthropic's and OpenAI's own clients.
#pragma once

#include "holt/base/deadline.hpp"
#include "holt/base/time.hpp"
#include "models/http_client.hpp"

#include <functional>
#include <optional>

namespace holt {

using Headers = std::map<std::string, std::string>;

/// The header x-should-retry decides if present, else the status: 408, 409, 429 and everything from 500.
bool should_retry(const HttpHead& head);

/// The wait before try number `retry` + 1 (from 0): what the reply asks for when that is above zero, else
/// 0.5 s doubled each time up to 8 s, less up to a quarter by `random` (0 to 1). Never over 300 s.
Duration retry_delay(int retry, const Headers& headers, WallTime now, double random);

/// Where waits, chance and the time come from; tests bring their own.
struct RetryClock {
  std::function<Task<void>(Duration)> sleep = [](Duration d) { return sleep_for(d); };
  std::function<double()> random = {};  ///< 0 to 1; none: a generator of its own
  std::function<WallTime()> now = [] { return wall_now(); };
};

struct RetryOptions {
  int max_retries = 2;
  Deadline deadline = Deadline::never();
};

/// Tries `attempt` until it succeeds, is refused for good or has been tried `max_retries` + 1 times.
/// `attempt` answers the head of a refusal (nothing: done) and may throw HttpTransportError, which is tried
/// again too unless the deadline passed. A wait over the deadline ends in HttpTransportError (deadline).
Task<void> with_retries(const RetryClock& clock, RetryOptions options,
                        std::function<Task<std::optional<HttpHead>>()> attempt);

}  // namespace holt
