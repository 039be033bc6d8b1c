#include "messages/reading.hpp"

#include <array>

namespace holt {
namespace {

constexpr std::string_view k_effort = "thinking";

SystemPromptPart read_system_prompt(const Fields& fields) {
  return {.content = fields.text("content"),
          .timestamp = fields.timestamp_or_now("timestamp"),
          .dynamic_ref = fields.optional_text("dynamic_ref"),
          .scope = fields.word_or("scope", SystemPromptScope::conversation),
          .metadata = fields.optional_object("metadata")};
}

UserPromptPart read_user_prompt(const Fields& fields) {
  Json& content = fields.need("content");
  Place place = fields.place().key("content");
  Timestamp timestamp = fields.timestamp_or_now("timestamp");
  if (content.is_string())
    return {.content = std::move(content.get_ref<std::string&>()), .timestamp = timestamp};
  if (!content.is_array()) refuse(place, "Expected a string or an array");
  std::vector<UserContentItem> items;
  items.reserve(content.size());
  for (Json& item : content) items.push_back(read_content_item(item, place.index(items.size())));
  return {.content = std::move(items), .timestamp = timestamp};
}

RetryInfo read_retry(Json& value, const Place& place) {
  Fields fields(value, place);
  return {.cause = fields.word<RetryCause>("cause"),
          .attempt = fields.optional_integer("attempt"),
          .max_retries = fields.optional_integer("max_retries")};
}

/// Results of the tool search have a shape of their own.
void check_tool_search(const ToolReturnPart& part, const Place& place) {
  if (part.tool_kind != "tool-search" || part.outcome != ToolOutcome::success) return;
  if (part.tool_name != "search_tools") refuse(place.key("tool_name"), "Expected 'search_tools'");
  Place content = place.key("content");
  need_object(part.content, content);
  auto found = part.content.find("discovered_tools");
  if (found == part.content.end()) refuse(content.key("discovered_tools"), "Required, but missing");
  if (!found->is_array()) refuse(content.key("discovered_tools"), "Expected an array");
}

std::string tool_call_id(const Fields& fields) {
  return fields.find("tool_call_id") ? fields.text("tool_call_id") : generate_tool_call_id();
}

ToolReturnPart read_tool_return(const Fields& fields) {
  ToolReturnPart part{.tool_name = fields.text("tool_name"),
                      .content = fields.required_any("content"),
                      .tool_call_id = tool_call_id(fields),
                      .tool_kind = fields.optional_text("tool_kind"),
                      .metadata = fields.any("metadata"),
                      .timestamp = fields.timestamp_or_now("timestamp"),
                      .outcome = fields.word_or("outcome", ToolOutcome::success)};
  if (Json* retry = fields.find("retry"); retry && !retry->is_null()) {
    Place place = fields.place().key("retry");
    part.retry = read_retry(*retry, place);
    if (part.retry->cause == RetryCause::no_output)
      refuse(place.key("cause"), "not a cause of a tool's retry");
  }
  normalise_tool_content(part.content);
  check_tool_search(part, fields.place());
  return part;
}

/// An error item without its context: type, loc, msg, input in this order.
Json read_error_item(Json& value, const Place& place) {
  Fields fields(value, place);
  Json item = Json::object();
  item["type"] = fields.text("type");
  Place loc_place = place.key("loc");
  Json::array_t& loc = fields.array("loc");
  for (std::size_t i = 0; i < loc.size(); ++i) {
    if (!loc[i].is_string() && !loc[i].is_number_integer()) {
      refuse(loc_place.index(i), "Expected a string or an integer");
    }
  }
  item["loc"] = std::move(loc);
  item["msg"] = fields.text("msg");
  if (Json* input = fields.find("input")) item["input"] = std::move(*input);
  return item;
}

/// A text, or a list of error items.
Json read_feedback_content(const Fields& fields) {
  Json& content = fields.need("content");
  Place place = fields.place().key("content");
  if (content.is_string()) return std::move(content);
  if (!content.is_array()) refuse(place, "Expected a string or an array");
  std::size_t index = 0;
  for (Json& item : content) item = read_error_item(item, place.index(index++));
  return std::move(content);
}

RetryFeedbackPart read_retry_feedback(const Fields& fields) {
  Place place = fields.place().key("retry");
  RetryFeedbackPart part{.content = read_feedback_content(fields),
                         .retry = read_retry(fields.need("retry"), place),
                         .timestamp = fields.timestamp_or_now("timestamp")};
  RetryCause cause = part.retry.cause;
  if (cause == RetryCause::unknown_tool || cause == RetryCause::unavailable_tool) {
    refuse(place.key("cause"), "not a cause of retry feedback");
  }
  return part;
}

/// What older versions wrote for every kind of retry.
RequestPart read_retry_prompt(const Fields& fields) {
  Json content = read_feedback_content(fields);
  bool errors = content.is_array();
  auto tool_name = fields.optional_text("tool_name");
  std::string call_id = tool_call_id(fields);
  Timestamp timestamp = fields.timestamp_or_now("timestamp");
  if (!tool_name) {
    RetryInfo retry{.cause = errors ? RetryCause::validation_error : RetryCause::model_retry,
                    .attempt = std::nullopt,
                    .max_retries = std::nullopt};
    return RetryFeedbackPart{.content = std::move(content), .retry = retry, .timestamp = timestamp};
  }
  ToolReturnPart part{.tool_name = std::move(*tool_name),
                      .content = std::move(content),
                      .tool_call_id = std::move(call_id),
                      .timestamp = timestamp,
                      .outcome = ToolOutcome::retried};
  if (errors) {
    part.retry = RetryInfo{
        .cause = RetryCause::validation_error, .attempt = std::nullopt, .max_retries = std::nullopt};
  }
  return part;
}

ToolAvailabilityDeltaPart read_availability_delta(const Fields& fields) {
  ToolAvailabilityDeltaPart part;
  Place place = fields.place().key("tools_added");
  if (Json* added = fields.find("tools_added", "added")) {
    for (Json& name : need_array(*added, place)) {
      part.tools_added.push_back(need_text(name, place.index(part.tools_added.size())));
    }
  }
  part.tool_call_id = fields.optional_text("tool_call_id");
  return part;
}

ModelSettingsDeltaPart read_settings_delta(const Fields& fields) {
  ModelSettingsDeltaPart part;
  Json& settings = fields.need("settings");
  Place place = fields.place().key("settings");
  need_object(settings, place);
  if (auto effort = settings.find(k_effort); effort != settings.end()) {
    if (!effort->is_string() && !effort->is_null()) refuse(place.key(k_effort), "Expected a string");
    part.settings[std::string(k_effort)] = std::move(*effort);
  }
  part.top_level = fields.boolean_or("top_level", false);
  return part;
}

/// `agent`, `agent:NAME`, `run:NAME`, `toolset:ID[:NAME]`, `capability:ID[:NAME]`.
bool is_instruction_id(std::string_view id) {
  if (id == "agent") return true;
  std::size_t colon = id.find(':');
  if (colon == id.npos || colon + 1 == id.size()) return false;
  std::string_view owner = id.substr(0, colon);
  return owner == "agent" || owner == "run" || owner == "toolset" || owner == "capability";
}

std::optional<std::string> instruction_id(const Fields& fields) {
  auto id = fields.optional_text("id");
  return id && is_instruction_id(*id) ? id : std::nullopt;
}

InstructionDeltaPart read_instruction_delta(const Fields& fields) {
  fields.need("id");
  fields.need("content");
  return {.id = instruction_id(fields),
          .content = fields.optional_text("content"),
          .base_hash = fields.optional_text("base_hash")};
}

Json to_json(std::optional<std::string> text) {
  return text ? Json(std::move(*text)) : Json(nullptr);
}

Json read_baseline_item(Json& value, const Place& place) {
  Fields fields(value, place);
  std::string kind = fields.text_or("part_kind", "instruction");
  Json item = Json::object();
  if (kind == "instruction") {
    item["content"] = fields.text("content");
    item["dynamic"] = fields.boolean_or("dynamic", false);
    item["on_change"] = to_json(fields.optional_text("on_change"));
    item["name"] = to_json(fields.optional_text("name"));
    item["id"] = to_json(instruction_id(fields));
  } else if (kind == "instruction-digest") {
    item["id"] = to_json(instruction_id(fields));
    item["dynamic"] = fields.boolean_or("dynamic", false);
    item["content_hash"] = fields.text("content_hash");
  } else {
    refuse(place.key("part_kind"), "Expected 'instruction' or 'instruction-digest'");
  }
  item["part_kind"] = kind;
  return item;
}

InstructionBaselinePart read_instruction_baseline(const Fields& fields) {
  InstructionBaselinePart part;
  Place place = fields.place().key("instructions");
  for (Json& item : fields.array("instructions")) {
    part.instructions.push_back(read_baseline_item(item, place.index(part.instructions.size())));
  }
  return part;
}

CompactionPart read_local_compaction(const Fields& fields) {
  CompactionPart part = read_compaction(fields);
  if (part.provider_name || part.id || !part.provider_details.is_null()) {
    refuse(fields.place(), "a compaction in a request has no provider_name, id or provider_details");
  }
  return part;
}

SpeechPart read_user_speech(const Fields& fields) {
  return read_speech(fields, "user");
}

struct Reader {
  std::string_view part_kind;
  RequestPart (*read)(const Fields&);
};
template <auto read>
RequestPart as_part(const Fields& fields) {
  return read(fields);
}
constexpr std::array<Reader, 11> k_readers = {{
    {"system-prompt", as_part<read_system_prompt>},
    {"user-prompt", as_part<read_user_prompt>},
    {"tool-return", as_part<read_tool_return>},
    {"retry-prompt", read_retry_prompt},
    {"retry-feedback", as_part<read_retry_feedback>},
    {"tool-availability-delta", as_part<read_availability_delta>},
    {"model-settings-delta", as_part<read_settings_delta>},
    {"instruction-delta", as_part<read_instruction_delta>},
    {"instruction-baseline", as_part<read_instruction_baseline>},
    {"compaction", as_part<read_local_compaction>},
    {"speech", as_part<read_user_speech>},
}};

}  // namespace

RequestPart read_request_part(Json& value, const Place& place) {
  Fields fields(value, place);
  std::string kind = fields.text("part_kind");
  for (const Reader& reader : k_readers) {
    if (reader.part_kind == kind) return reader.read(fields);
  }
  refuse(place.key("part_kind"), "no kind of request part: " + printable(kind, 80));
}

}  // namespace holt
