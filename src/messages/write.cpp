#include "holt/base/ids.hpp"
#include "messages/object_builder.hpp"
#include "messages/reading.hpp"

namespace holt {
namespace {

Json word(auto value) {
  return std::string(word_of(value));
}
Json text(const std::optional<std::string>& value) {
  return value ? Json(*value) : Json(nullptr);
}
Json number(const std::optional<std::int64_t>& value) {
  return value ? Json(*value) : Json(nullptr);
}
Json time(const Timestamp& value) {
  return to_string(value);
}

Json retry_to_json(const RetryInfo& retry) {
  return ObjectBuilder(3)
      .add("cause", word(retry.cause))
      .add("attempt", number(retry.attempt))
      .add("max_retries", number(retry.max_retries))
      .take();
}

Json user_content_to_json(const UserContent& content) {
  if (auto* plain = std::get_if<std::string>(&content)) return *plain;
  Json items = Json::array();
  for (const auto& item : std::get<std::vector<UserContentItem>>(content))
    items.push_back(content_to_json(item));
  return items;
}

Json tool_call_to_json(const ToolCallPart& part, const char* part_kind) {
  return ObjectBuilder(8)
      .add("tool_name", part.tool_name)
      .add("args", part.args)
      .add("tool_call_id", part.tool_call_id)
      .add("tool_kind", text(part.tool_kind))
      .add("id", text(part.id))
      .add("provider_name", text(part.provider_name))
      .add("provider_details", part.provider_details)
      .add("part_kind", part_kind)
      .take();
}

struct PartWriter {
  Json operator()(const SystemPromptPart& part) const {
    return ObjectBuilder(6)
        .add("content", part.content)
        .add("timestamp", time(part.timestamp))
        .add("dynamic_ref", text(part.dynamic_ref))
        .add("scope", word(part.scope))
        .add("metadata", part.metadata)
        .add("part_kind", "system-prompt")
        .take();
  }
  Json operator()(const UserPromptPart& part) const {
    return ObjectBuilder(3)
        .add("content", user_content_to_json(part.content))
        .add("timestamp", time(part.timestamp))
        .add("part_kind", "user-prompt")
        .take();
  }
  Json operator()(const ToolReturnPart& part) const {
    return ObjectBuilder(9)
        .add("tool_name", part.tool_name)
        .add("content", part.content)
        .add("tool_call_id", part.tool_call_id)
        .add("tool_kind", text(part.tool_kind))
        .add("metadata", part.metadata)
        .add("timestamp", time(part.timestamp))
        .add("outcome", word(part.outcome))
        .add("retry", part.retry ? retry_to_json(*part.retry) : Json(nullptr))
        .add("part_kind", "tool-return")
        .take();
  }
  Json operator()(const RetryFeedbackPart& part) const {
    return ObjectBuilder(4)
        .add("content", part.content)
        .add("retry", retry_to_json(part.retry))
        .add("timestamp", time(part.timestamp))
        .add("part_kind", "retry-feedback")
        .take();
  }
  Json operator()(const ToolAvailabilityDeltaPart& part) const {
    return ObjectBuilder(3)
        .add("tools_added", part.tools_added)
        .add("tool_call_id", text(part.tool_call_id))
        .add("part_kind", "tool-availability-delta")
        .take();
  }
  Json operator()(const ModelSettingsDeltaPart& part) const {
    return ObjectBuilder(3)
        .add("settings", part.settings)
        .add("top_level", part.top_level)
        .add("part_kind", "model-settings-delta")
        .take();
  }
  Json operator()(const InstructionDeltaPart& part) const {
    return ObjectBuilder(4)
        .add("id", text(part.id))
        .add("content", text(part.content))
        .add("base_hash", text(part.base_hash))
        .add("part_kind", "instruction-delta")
        .take();
  }
  Json operator()(const InstructionBaselinePart& part) const {
    return ObjectBuilder(2)
        .add("instructions", part.instructions)
        .add("part_kind", "instruction-baseline")
        .take();
  }
  Json operator()(const CompactionPart& part) const {
    return ObjectBuilder(6)
        .add("content", text(part.content))
        .add("id", text(part.id))
        .add("provider_name", text(part.provider_name))
        .add("provider_details", part.provider_details)
        .add("metadata", part.metadata)
        .add("part_kind", "compaction")
        .take();
  }
  Json operator()(const SpeechPart& part) const {
    return ObjectBuilder(8)
        .add("speaker", part.speaker)
        .add("transcript", text(part.transcript))
        .add("audio", part.audio ? content_to_json(*part.audio) : Json(nullptr))
        .add("interrupted_at_ms", number(part.interrupted_at_ms))
        .add("id", text(part.id))
        .add("provider_name", text(part.provider_name))
        .add("provider_details", part.provider_details)
        .add("part_kind", "speech")
        .take();
  }
  Json operator()(const TextPart& part) const {
    return ObjectBuilder(6)
        .add("content", part.content)
        .add("id", text(part.id))
        .add("provider_name", text(part.provider_name))
        .add("provider_details", part.provider_details)
        .add("citations", part.citations)
        .add("part_kind", "text")
        .take();
  }
  Json operator()(const ThinkingPart& part) const {
    return ObjectBuilder(6)
        .add("content", part.content)
        .add("id", text(part.id))
        .add("signature", text(part.signature))
        .add("provider_name", text(part.provider_name))
        .add("provider_details", part.provider_details)
        .add("part_kind", "thinking")
        .take();
  }
  Json operator()(const ToolCallPart& part) const { return tool_call_to_json(part, "tool-call"); }
  Json operator()(const BuiltinToolCallPart& part) const {
    return tool_call_to_json(part, "builtin-tool-call");
  }
  Json operator()(const BuiltinToolReturnPart& part) const {
    return ObjectBuilder(10)
        .add("tool_name", part.tool_name)
        .add("content", part.content)
        .add("tool_call_id", part.tool_call_id)
        .add("tool_kind", text(part.tool_kind))
        .add("metadata", part.metadata)
        .add("timestamp", time(part.timestamp))
        .add("outcome", word(part.outcome))
        .add("provider_name", text(part.provider_name))
        .add("provider_details", part.provider_details)
        .add("part_kind", "builtin-tool-return")
        .take();
  }
  Json operator()(const FilePart& part) const {
    return ObjectBuilder(5)
        .add("content", content_to_json(part.content))
        .add("id", text(part.id))
        .add("provider_name", text(part.provider_name))
        .add("provider_details", part.provider_details)
        .add("part_kind", "file")
        .take();
  }
};

Json parts_to_json(const auto& parts) {
  Json out = Json::array();
  out.get_ref<Json::array_t&>().reserve(parts.size());
  for (const auto& part : parts) out.push_back(part_to_json_value(part));
  return out;
}

Json workspace_ref_to_json(const std::optional<WorkspaceRef>& ref) {
  if (!ref) return nullptr;
  return ObjectBuilder(2).add("provider", ref->provider).add("id", ref->id).take();
}

struct MessageWriter {
  Json operator()(const ModelRequest& request) const {
    return ObjectBuilder(8)
        .add("parts", parts_to_json(request.parts))
        .add("timestamp", request.timestamp ? time(*request.timestamp) : Json(nullptr))
        .add("instructions", text(request.instructions))
        .add("kind", "request")
        .add("run_id", text(request.run_id))
        .add("conversation_id", text(request.conversation_id))
        .add("metadata", request.metadata)
        .add("state", word(request.state))
        .take();
  }
  Json operator()(const ModelResponse& response) const {
    return ObjectBuilder(17)
        .add("parts", parts_to_json(response.parts))
        .add("usage", usage_to_json(response.usage))
        .add("model_name", text(response.model_name))
        .add("timestamp", time(response.timestamp))
        .add("kind", "response")
        .add("provider_name", text(response.provider_name))
        .add("provider_url", text(response.provider_url))
        .add("provider_details", response.provider_details)
        .add("provider_response_id", text(response.provider_response_id))
        .add("finish_reason", response.finish_reason ? word(*response.finish_reason) : Json(nullptr))
        .add("run_id", text(response.run_id))
        .add("conversation_id", text(response.conversation_id))
        .add("metadata", response.metadata)
        .add("workspace_ref", workspace_ref_to_json(response.workspace_ref))
        .add("history_digest", text(response.history_digest))
        .add("failed_attempts", response.failed_attempts)
        .add("state", word(response.state))
        .take();
  }
};

}  // namespace

std::string_view to_string(ToolOutcome outcome) {
  return word_of(outcome);
}
std::string_view to_string(RetryCause cause) {
  return word_of(cause);
}
std::string_view to_string(FinishReason reason) {
  return word_of(reason);
}

Json part_to_json_value(const ResponsePart& part) {
  return std::visit(PartWriter{}, part);
}
Json part_to_json_value(const RequestPart& part) {
  return std::visit(PartWriter{}, part);
}
Json message_to_json_value(const ModelMessage& message) {
  return std::visit(MessageWriter{}, message);
}

Json messages_to_json_value(const MessageHistory& history) {
  Json out = Json::array();
  for (const auto& message : history) out.push_back(message_to_json_value(message));
  return out;
}

std::string messages_to_json(const MessageHistory& history) {
  // Message by message: the whole history need not stand in memory twice.
  std::string out = "[";
  for (const auto& message : history) {
    if (out.size() > 1) out += ',';
    out += dump_json(message_to_json_value(message));
  }
  return out + "]";
}

std::string generate_tool_call_id() {
  std::string digits = random_hex(32);
  digits[12] = '4';  // a UUID of version 4, RFC 9562
  digits[16] = "89ab"[digits[16] % 4];
  return "pyd_ai_" + digits;
}

}  // namespace holt
