// What a run has used, and how much it may use.
//
//   auto result = agent.run_sync("...", {.usage_limits = {.request_limit = 10}});
//   std::cout << result.usage().total_tokens() << "\n";
//
// Depends on messages/ only. Plain values.
#pragma once

#include "holt/messages/values.hpp"
#include "holt/models/errors.hpp"

#include <cstdint>
#include <optional>

namespace holt {

/// The sum over all requests of a run, or of several runs that share it.
struct RunUsage : RequestUsage {
  std::int64_t requests = 0;
  std::int64_t tool_calls = 0;  ///< calls of function tools that ended with success

  using RequestUsage::add;
  void add(const RunUsage& other);
};

/// Bounds on a RunUsage; none means no bound.
struct UsageLimits {
  std::optional<std::int64_t> request_limit = 50;
  std::optional<std::int64_t> tool_calls_limit = std::nullopt;
  std::optional<std::int64_t> input_tokens_limit = std::nullopt;
  std::optional<std::int64_t> output_tokens_limit = std::nullopt;
  std::optional<std::int64_t> total_tokens_limit = std::nullopt;
  std::optional<std::int64_t> per_request_input_tokens_limit = std::nullopt;

  /// Throws UsageLimitExceeded when one more request would pass a limit.
  void check_before_request(const RunUsage& usage) const;
  /// Throws UsageLimitExceeded when the calls, taken together, would pass tool_calls_limit.
  void check_before_tool_calls(const RunUsage& usage, std::int64_t calls) const;
  /// Throws UsageLimitExceeded when the response of `request` took the run past a limit.
  void check_after_response(const RunUsage& usage, const RequestUsage& request) const;
  /// True when any limit on tokens is set.
  bool limits_tokens() const;
};

}  // namespace holt
