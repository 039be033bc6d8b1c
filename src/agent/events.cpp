#include "holt/agent/events.hpp"

namespace holt {
namespace {

Json content_json(const std::optional<UserContent>& content) {
  if (!content) return nullptr;
  if (const auto* text = std::get_if<std::string>(&*content)) return *text;
  Json items = Json::array();
  for (const auto& item : std::get<std::vector<UserContentItem>>(*content))
    items.push_back(content_to_json(item));
  return items;
}

Json call_json(const char* kind, const ToolCallPart& part, std::optional<bool> args_valid) {
  Json json = Json::object();
  json["part"] = part_to_json_value(ResponsePart(part));
  json["args_valid"] = args_valid ? Json(*args_valid) : Json(nullptr);
  json["event_kind"] = kind;
  return json;
}

struct ToJson {
  Json operator()(const FunctionToolCallEvent& event) const {
    return call_json("function_tool_call", event.part, event.args_valid);
  }
  Json operator()(const FunctionToolResultEvent& event) const {
    Json json = Json::object();
    json["part"] = part_to_json_value(RequestPart(event.part));
    json["content"] = content_json(event.content);
    json["event_kind"] = "function_tool_result";
    return json;
  }
  Json operator()(const OutputToolCallEvent& event) const {
    return call_json("output_tool_call", event.part, event.args_valid);
  }
  Json operator()(const OutputToolResultEvent& event) const {
    Json json = Json::object();
    json["part"] = part_to_json_value(RequestPart(event.part));
    json["event_kind"] = "output_tool_result";
    return json;
  }
  Json operator()(const ToolAvailabilityDeltaEvent& event) const {
    Json json = Json::object();
    json["part"] = part_to_json_value(RequestPart(event.part));
    json["event_kind"] = "tool_availability_delta";
    return json;
  }
  Json operator()(const ModelSettingsDeltaEvent& event) const {
    Json json = Json::object();
    json["part"] = part_to_json_value(RequestPart(event.part));
    json["event_kind"] = "model_settings_delta";
    return json;
  }
  Json operator()(const CustomEvent& event) const {
    Json json = Json::object();
    json["name"] = event.name;
    json["payload"] = event.data;
    json["tool_call_id"] = event.tool_call_id ? Json(*event.tool_call_id) : Json(nullptr);
    json["event_kind"] = "custom";
    return json;
  }
  template <class StreamEvent>
  Json operator()(const StreamEvent& event) const {
    return event_to_json(ModelStreamEvent(event));
  }
};

}  // namespace

Json event_to_json(const AgentEvent& event) {
  return std::visit(ToJson{}, event);
}

}  // namespace holt
