// The small values that messages are made of: times, references, usage, retry marks.
//
//   auto time = holt::parse_timestamp("2026-01-02T03:04:05.125+01:00");   // nothing when it is none
//   std::string text = holt::to_string(*time);                            // 2026-01-02T03:04:05.125000+01:00
//
// Plain values, no thread-safety of their own. Depends on base/. Source of every name and default: the
// message history of Pydantic AI, as docs/reference.md ("History") describes it.
#pragma once

#include "holt/base/json.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace holt {

/// A date and time as a history holds it: microseconds since 1970 on the clock of its own offset's UTC, and
/// the offset as written. No offset: the text had none. A value.
struct Timestamp {
  std::int64_t microseconds = 0;          ///< UTC; local time when there is no offset
  std::optional<int> offset_minutes = 0;  ///< 0 is written as Z

  /// The wall clock, in UTC.
  static Timestamp now();
  bool operator==(const Timestamp&) const = default;
};

/// As a history holds it: YYYY-MM-DDTHH:MM:SS, six digits of microseconds unless they are zero, then Z, an
/// offset, or nothing.
std::string to_string(const Timestamp& timestamp);

/// From a text of that form (also with a space or `t` between, without seconds, a bare date, an offset
/// without colon), or a number, or a text holding one: seconds since 1970, milliseconds above 2*10^10.
/// Nothing for anything else.
std::optional<Timestamp> parse_timestamp(const Json& value);

/// The serialisable name of an environment. Holds no credentials.
struct WorkspaceRef {
  std::string provider;  ///< e.g. "smol", "local"
  std::string id;
  bool operator==(const WorkspaceRef&) const = default;
};

/// Tokens of one request, or the sum of several.
struct RequestUsage {
  std::int64_t input_tokens = 0;
  std::int64_t cache_write_tokens = 0;
  std::int64_t cache_write_1h_tokens = 0;
  std::int64_t cache_read_tokens = 0;
  std::int64_t output_tokens = 0;
  std::int64_t unmeasured_requests = 0;  ///< written only when not 0
  std::int64_t output_reasoning_tokens = 0;
  std::int64_t input_audio_tokens = 0;
  std::int64_t cache_audio_read_tokens = 0;
  std::int64_t output_audio_tokens = 0;
  double audio_seconds = 0.0;
  Json details = Json::object();    ///< name -> integer
  std::optional<std::string> cost;  ///< a decimal number as text; unknown when empty
  Json extra = Json::object();      ///< unknown keys, kept and written at the end

  std::int64_t total_tokens() const;
  /// Adds every figure, entry of details and known cost; sums stop at the largest number. `extra` stays.
  void add(const RequestUsage& other);
};

/// Every field in order, `unmeasured_requests` only when it is not 0, unknown keys at the end.
Json usage_to_json(const RequestUsage& usage);
/// Throws Error INVALID_CONFIG naming the field that is wrong.
RequestUsage usage_from_json(const Json& value);

/// How a tool call ended.
enum class ToolOutcome { success, failed, denied, interrupted, retried };

enum class RetryCause { validation_error, model_retry, unknown_tool, unavailable_tool, no_output };

/// Why and how often something was asked again.
struct RetryInfo {
  RetryCause cause = RetryCause::model_retry;
  std::optional<std::int64_t> attempt;  ///< from 1
  std::optional<std::int64_t> max_retries;
};

enum class FinishReason { stop, length, content_filter, tool_call, error };

/// The words of a history.
std::string_view to_string(ToolOutcome outcome);
std::string_view to_string(RetryCause cause);
std::string_view to_string(FinishReason reason);

}  // namespace holt
