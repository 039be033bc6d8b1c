// What happens in a run, as it happens: the model's stream, tool calls and their results, and what tools
// tell.
//
//   agent.run_sync("...", {.event_stream_handler = [](const RunContext&, const AgentEvent& event) {
//     std::cout << holt::dump_json(holt::event_to_json(event)) << "\n";
//   }});
//
// Plain values. Depends on models/ and messages/.
#pragma once

#include "holt/messages/message.hpp"
#include "holt/models/model.hpp"

#include <functional>
#include <optional>
#include <string>
#include <variant>

namespace holt {

class RunContext;

/// A call is about to run; `args_valid` says whether its arguments fit.
struct FunctionToolCallEvent {
  ToolCallPart part;
  std::optional<bool> args_valid = std::nullopt;
};
/// A call has its answer, in whatever order calls end. `content` is what the tool adds to the prompt.
struct FunctionToolResultEvent {
  ToolReturnPart part;
  std::optional<UserContent> content = std::nullopt;
};
struct OutputToolCallEvent {
  ToolCallPart part;
  std::optional<bool> args_valid = std::nullopt;
};
struct OutputToolResultEvent {
  ToolReturnPart part;
};
/// Tools were added that the first request of the run did not offer.
struct ToolAvailabilityDeltaEvent {
  ToolAvailabilityDeltaPart part;
};
struct ModelSettingsDeltaEvent {
  ModelSettingsDeltaPart part;
};
/// What a tool or a capability tells of itself, e.g. {"shell.command_output", {{"text", "..."}}}.
struct CustomEvent {
  std::string name;
  Json data = nullptr;
  std::optional<std::string> tool_call_id = std::nullopt;  ///< filled in by RunContext::emit()
};

using AgentEvent =
    std::variant<PartStartEvent, PartDeltaEvent, PartEndEvent, FinalResultEvent, FunctionToolCallEvent,
                 FunctionToolResultEvent, OutputToolCallEvent, OutputToolResultEvent,
                 ToolAvailabilityDeltaEvent, ModelSettingsDeltaEvent, CustomEvent>;

/// With `event_kind`, as the events of Pydantic AI are written.
Json event_to_json(const AgentEvent& event);

/// Gets every event of a run, one at a time; on the run's strand, or on the thread of the tool that tells.
/// What it throws ends the run.
using EventHandler = std::function<void(const RunContext&, const AgentEvent&)>;

}  // namespace holt
