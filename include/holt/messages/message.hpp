// The message history: what was said to a model and what it answered, as Pydantic AI keeps it.
//
//   auto history = holt::messages_from_json(text);           // throws Error INVALID_CONFIG with the place
//   for (const auto& message : history)
//     if (auto* response = std::get_if<holt::ModelResponse>(&message)) std::cout << response->text();
//   std::string again = holt::messages_to_json(history);     // byte for byte what Pydantic AI would write
//
// Plain values, no thread-safety of their own. Depends on base/. Field order below is the order written.
#pragma once

#include "holt/base/json.hpp"
#include "holt/messages/content.hpp"
#include "holt/messages/values.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace holt {

// Parts of a request.

enum class SystemPromptScope { conversation, request };

struct SystemPromptPart {
  std::string content;
  Timestamp timestamp = Timestamp::now();
  std::optional<std::string> dynamic_ref = std::nullopt;
  SystemPromptScope scope = SystemPromptScope::conversation;
  Json metadata = nullptr;
};

struct UserPromptPart {
  UserContent content;
  Timestamp timestamp = Timestamp::now();
};

struct ToolReturnPart {
  std::string tool_name;
  Json content = nullptr;  ///< any JSON; media items in the form of content_to_json()
  std::string tool_call_id = {};
  std::optional<std::string> tool_kind = std::nullopt;
  Json metadata = nullptr;
  Timestamp timestamp = Timestamp::now();
  ToolOutcome outcome = ToolOutcome::success;
  std::optional<RetryInfo> retry = std::nullopt;
};

struct RetryFeedbackPart {
  Json content;  ///< text, or a list of error items
  RetryInfo retry = {};
  Timestamp timestamp = Timestamp::now();
};

struct ToolAvailabilityDeltaPart {
  std::vector<std::string> tools_added = {};
  std::optional<std::string> tool_call_id = std::nullopt;
};

struct ModelSettingsDeltaPart {
  Json settings = Json::object();  ///< only the key "thinking"
  bool top_level = false;
};

struct InstructionDeltaPart {
  std::optional<std::string> id;
  std::optional<std::string> content;
  std::optional<std::string> base_hash = std::nullopt;
};

struct InstructionBaselinePart {
  Json instructions = Json::array();  ///< checked and normalised items
};

struct CompactionPart {
  std::optional<std::string> content;
  std::optional<std::string> id = std::nullopt;
  std::optional<std::string> provider_name = std::nullopt;
  Json provider_details = nullptr;
  Json metadata = nullptr;
};

struct SpeechPart {
  std::string speaker;  ///< "user" in a request, "assistant" in a response
  std::optional<std::string> transcript = std::nullopt;
  std::optional<BinaryContent> audio = std::nullopt;
  std::optional<std::int64_t> interrupted_at_ms = std::nullopt;
  std::optional<std::string> id = std::nullopt;
  std::optional<std::string> provider_name = std::nullopt;
  Json provider_details = nullptr;
};

using RequestPart = std::variant<SystemPromptPart, UserPromptPart, ToolReturnPart, RetryFeedbackPart,
                                 ToolAvailabilityDeltaPart, ModelSettingsDeltaPart, InstructionDeltaPart,
                                 InstructionBaselinePart, CompactionPart, SpeechPart>;

// Parts of a response.

struct TextPart {
  std::string content;
  std::optional<std::string> id = std::nullopt;
  std::optional<std::string> provider_name = std::nullopt;
  Json provider_details = nullptr;
  Json citations = nullptr;  ///< checked and normalised, or null
};

struct ThinkingPart {
  std::string content;
  std::optional<std::string> id = std::nullopt;
  std::optional<std::string> signature = std::nullopt;
  std::optional<std::string> provider_name = std::nullopt;
  Json provider_details = nullptr;
};

/// A call of one of our tools, or (BuiltinToolCallPart) of one that the provider runs itself.
struct ToolCallPart {
  std::string tool_name;
  Json args = nullptr;  ///< text exactly as it arrived (maybe cut or invalid JSON), object, or null
  std::string tool_call_id = {};
  std::optional<std::string> tool_kind = std::nullopt;
  std::optional<std::string> id = std::nullopt;
  std::optional<std::string> provider_name = std::nullopt;
  Json provider_details = nullptr;
};
struct BuiltinToolCallPart : ToolCallPart {};

struct BuiltinToolReturnPart {
  std::string tool_name;
  Json content = nullptr;
  std::string tool_call_id = {};
  std::optional<std::string> tool_kind = std::nullopt;
  Json metadata = nullptr;
  Timestamp timestamp = Timestamp::now();
  ToolOutcome outcome = ToolOutcome::success;
  std::optional<std::string> provider_name = std::nullopt;
  Json provider_details = nullptr;
};

struct FilePart {
  BinaryContent content;
  std::optional<std::string> id = std::nullopt;
  std::optional<std::string> provider_name = std::nullopt;
  Json provider_details = nullptr;
};

using ResponsePart = std::variant<TextPart, ThinkingPart, ToolCallPart, BuiltinToolCallPart,
                                  BuiltinToolReturnPart, FilePart, CompactionPart, SpeechPart>;

// Messages.

enum class RequestState { complete, interrupted };
enum class ResponseState { complete, incomplete, suspended, interrupted };

struct ModelRequest {
  std::vector<RequestPart> parts = {};
  std::optional<Timestamp> timestamp = std::nullopt;
  std::optional<std::string> instructions = std::nullopt;
  std::optional<std::string> run_id = std::nullopt;
  std::optional<std::string> conversation_id = std::nullopt;
  Json metadata = nullptr;
  RequestState state = RequestState::complete;
};

struct ModelResponse {
  std::vector<ResponsePart> parts = {};
  RequestUsage usage = {};
  std::optional<std::string> model_name = std::nullopt;
  Timestamp timestamp = Timestamp::now();
  std::optional<std::string> provider_name = std::nullopt;
  std::optional<std::string> provider_url = std::nullopt;
  Json provider_details = nullptr;
  std::optional<std::string> provider_response_id = std::nullopt;
  std::optional<FinishReason> finish_reason = std::nullopt;
  std::optional<std::string> run_id = std::nullopt;
  std::optional<std::string> conversation_id = std::nullopt;
  Json metadata = nullptr;
  std::optional<WorkspaceRef> workspace_ref = std::nullopt;
  std::optional<std::string> history_digest = std::nullopt;
  Json failed_attempts = nullptr;  ///< checked and normalised, or null
  ResponseState state = ResponseState::complete;

  /// All text parts joined without separator (agent.md has the finer rule for output).
  std::string text() const;
  std::vector<ToolCallPart> tool_calls() const;
};

using ModelMessage = std::variant<ModelRequest, ModelResponse>;
using MessageHistory = std::vector<ModelMessage>;

/// Reads a history. Throws Error INVALID_CONFIG naming the place ("[1].parts[0].part_kind: ..."), or line and
/// column where the text is not JSON. Unknown keys of messages and parts are dropped.
MessageHistory messages_from_json(std::string_view text);
MessageHistory messages_from_json_value(const Json& value);
/// Writes it compactly, every field, in order.
std::string messages_to_json(const MessageHistory& history);
Json messages_to_json_value(const MessageHistory& history);
Json message_to_json_value(const ModelMessage& message);
/// One part of a response as history JSON (events and streams).
Json part_to_json_value(const ResponsePart& part);
Json part_to_json_value(const RequestPart& part);

/// A tool call id as the library makes them: "pyd_ai_" + 32 hexadecimal digits.
std::string generate_tool_call_id();

}  // namespace holt
