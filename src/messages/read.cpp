#include "messages/reading.hpp"

#include <fmt/format.h>

namespace holt {
namespace {

ModelRequest read_request(const Fields& fields) {
  ModelRequest request;
  Place parts = fields.place().key("parts");
  for (Json& part : fields.array("parts")) {
    request.parts.push_back(read_request_part(part, parts.index(request.parts.size())));
  }
  request.timestamp = fields.optional_timestamp("timestamp");
  request.instructions = fields.optional_text("instructions");
  request.run_id = fields.optional_text("run_id");
  request.conversation_id = fields.optional_text("conversation_id");
  request.metadata = fields.optional_object("metadata");
  request.state = fields.word_or("state", RequestState::complete);
  return request;
}

std::optional<WorkspaceRef> read_workspace_ref(const Fields& fields) {
  Json* value = fields.find("workspace_ref");
  if (!value || value->is_null()) return std::nullopt;
  Place place = fields.place().key("workspace_ref");
  Fields ref(*value, place);
  return WorkspaceRef{.provider = ref.text("provider"), .id = ref.text("id")};
}

std::optional<FinishReason> read_finish_reason(const Fields& fields) {
  const Json* value = fields.find("finish_reason");
  if (!value || value->is_null()) return std::nullopt;
  return fields.word<FinishReason>("finish_reason");
}

ModelResponse read_response(const Fields& fields) {
  ModelResponse response;
  Place parts = fields.place().key("parts");
  for (Json& part : fields.array("parts")) {
    response.parts.push_back(read_response_part(part, parts.index(response.parts.size())));
  }
  if (Json* usage = fields.find("usage")) response.usage = read_usage(*usage, fields.place().key("usage"));
  response.model_name = fields.optional_text("model_name");
  response.timestamp = fields.timestamp_or_now("timestamp");
  response.provider_name = fields.optional_text("provider_name");
  response.provider_url = fields.optional_text("provider_url");
  response.provider_details = fields.optional_object("provider_details", "vendor_details");
  response.provider_response_id = fields.optional_text("provider_response_id", "vendor_id");
  response.finish_reason = read_finish_reason(fields);
  response.run_id = fields.optional_text("run_id");
  response.conversation_id = fields.optional_text("conversation_id");
  response.metadata = fields.optional_object("metadata");
  response.workspace_ref = read_workspace_ref(fields);
  response.history_digest = fields.optional_text("history_digest");
  if (Json* attempts = fields.find("failed_attempts")) {
    response.failed_attempts = read_failed_attempts(*attempts, fields.place().key("failed_attempts"));
  }
  response.state = fields.word_or("state", ResponseState::complete);
  return response;
}

ModelMessage read_message(Json& value, const Place& place) {
  Fields fields(value, place);
  std::string kind = fields.text("kind");
  if (kind == "request") return read_request(fields);
  if (kind == "response") return read_response(fields);
  refuse(place.key("kind"), "Expected 'request' or 'response'");
}

/// Takes the history out of `value`.
MessageHistory read_history(Json& value) {
  Place whole;
  MessageHistory history;
  Json::array_t& messages = need_array(value, whole);
  history.reserve(messages.size());
  for (Json& message : messages) history.push_back(read_message(message, whole.index(history.size())));
  return history;
}

}  // namespace

MessageHistory messages_from_json(std::string_view text) {
  auto value = parse_json(text);
  if (!value) throw Error(ErrorCode::invalid_config, "Not JSON: " + value.error().text());
  return read_history(*value);
}

MessageHistory messages_from_json_value(const Json& value) {
  Json copy = value;
  return read_history(copy);
}

std::string ModelResponse::text() const {
  std::string out;
  for (const auto& part : parts) {
    if (auto* each = std::get_if<TextPart>(&part)) out += each->content;
  }
  return out;
}

std::vector<ToolCallPart> ModelResponse::tool_calls() const {
  std::vector<ToolCallPart> calls;
  for (const auto& part : parts) {
    if (auto* call = std::get_if<ToolCallPart>(&part)) calls.push_back(*call);
  }
  return calls;
}

}  // namespace holt
