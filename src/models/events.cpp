#include "holt/models/model.hpp"

namespace holt {
namespace {

Json text_or_null(const std::optional<std::string>& text) {
  return text ? Json(*text) : Json(nullptr);
}

Json to_json(const TextDelta& delta) {
  return {{"content_delta", delta.content_delta},
          {"provider_name", text_or_null(delta.provider_name)},
          {"provider_details", delta.provider_details},
          {"citations_delta", nullptr},
          {"part_delta_kind", "text"}};
}

Json to_json(const ThinkingDelta& delta) {
  return {{"content_delta", text_or_null(delta.content_delta)},
          {"signature_delta", text_or_null(delta.signature_delta)},
          {"provider_name", text_or_null(delta.provider_name)},
          {"provider_details", delta.provider_details},
          {"part_delta_kind", "thinking"}};
}

Json to_json(const ToolCallDelta& delta) {
  return {{"tool_name_delta", text_or_null(delta.tool_name_delta)},
          {"args_delta", delta.args_delta},
          {"tool_call_id", text_or_null(delta.tool_call_id)},
          {"provider_name", text_or_null(delta.provider_name)},
          {"provider_details", delta.provider_details},
          {"part_delta_kind", "tool_call"}};
}

Json to_json(const PartStartEvent& event) {
  return {{"index", event.index},
          {"part", part_to_json_value(event.part)},
          {"previous_part_kind", text_or_null(event.previous_part_kind)},
          {"event_kind", "part_start"}};
}

Json to_json(const PartDeltaEvent& event) {
  return {{"index", event.index},
          {"delta", std::visit([](const auto& delta) { return to_json(delta); }, event.delta)},
          {"event_kind", "part_delta"}};
}

Json to_json(const PartEndEvent& event) {
  return {{"index", event.index},
          {"part", part_to_json_value(event.part)},
          {"next_part_kind", text_or_null(event.next_part_kind)},
          {"event_kind", "part_end"}};
}

Json to_json(const FinalResultEvent& event) {
  return {{"tool_name", text_or_null(event.tool_name)},
          {"tool_call_id", text_or_null(event.tool_call_id)},
          {"event_kind", "final_result"}};
}

}  // namespace

Json event_to_json(const ModelStreamEvent& event) {
  return std::visit([](const auto& value) { return to_json(value); }, event);
}

}  // namespace holt
