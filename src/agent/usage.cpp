#include "holt/agent/usage.hpp"

#include <fmt/format.h>

namespace holt {
namespace {

constexpr std::string_view k_advice = ". If it needs more, raise the limit.";

void check_tokens_before(std::string_view limit_name, std::string_view counter,
                         std::optional<std::int64_t> limit, std::int64_t used) {
  if (limit && used > *limit)
    throw UsageLimitExceeded(fmt::format("One more request would pass {} {} ({}={}){}", limit_name, *limit,
                                         counter, used, k_advice));
}

void check_tokens_after(std::string_view limit_name, std::string_view counter,
                        std::optional<std::int64_t> limit, std::int64_t used) {
  if (limit && used > *limit)
    throw UsageLimitExceeded(
        fmt::format("The run is past {} {} ({}={}){}", limit_name, *limit, counter, used, k_advice));
}

}  // namespace

void RunUsage::add(const RunUsage& other) {
  RequestUsage::add(other);
  requests += other.requests;
  tool_calls += other.tool_calls;
}

void UsageLimits::check_before_request(const RunUsage& usage) const {
  if (request_limit && usage.requests >= *request_limit)
    throw UsageLimitExceeded(
        fmt::format("One more request would pass request_limit {}{}", *request_limit, k_advice));
  check_tokens_before("input_tokens_limit", "input_tokens", input_tokens_limit, usage.input_tokens);
  check_tokens_before("total_tokens_limit", "total_tokens", total_tokens_limit, usage.total_tokens());
}

void UsageLimits::check_before_tool_calls(const RunUsage& usage, std::int64_t calls) const {
  if (tool_calls_limit && usage.tool_calls + calls > *tool_calls_limit)
    throw UsageLimitExceeded(fmt::format("These tool calls would pass tool_calls_limit {} (tool_calls={}){}",
                                         *tool_calls_limit, usage.tool_calls + calls, k_advice));
}

void UsageLimits::check_after_response(const RunUsage& usage, const RequestUsage& request) const {
  check_tokens_after("input_tokens_limit", "input_tokens", input_tokens_limit, usage.input_tokens);
  check_tokens_after("output_tokens_limit", "output_tokens", output_tokens_limit, usage.output_tokens);
  check_tokens_after("total_tokens_limit", "total_tokens", total_tokens_limit, usage.total_tokens());
  check_tokens_after("per_request_input_tokens_limit", "request_input_tokens", per_request_input_tokens_limit,
                     request.input_tokens);
}

bool UsageLimits::limits_tokens() const {
  return input_tokens_limit || output_tokens_limit || total_tokens_limit || per_request_input_tokens_limit;
}

}  // namespace holt
