// The small values that messages are made of: times, references, usage, retry marks.
//
// Source of every name and default: spec of the message history, docs/reference.md ("History").
#pragma once

#include "holt/base/json.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace holt {

/// A date and time as a history holds it: microseconds since 1970 on the clock of its own offset's UTC, and
/// the offset as written. No offset: the text had none. A value.
struct Timestamp {
  std::int64_t microseconds = 0;          ///< UTC; local time when there is no offset
  std::optional<int> offset_minutes = 0;  ///< 0 is written as Z

  static Timestamp now();
  bool operator==(const Timestamp&) const = default;
};

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

  std::int64_t total_tokens() const { return input_tokens + output_tokens; }
  void add(const RequestUsage& other);
};

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

}  // namespace holt
