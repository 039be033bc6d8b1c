// The settings of a step.
#pragma once

#include "agent/run_state.hpp"

namespace holt::detail {

/// Model, agent, capabilities in order, run: the later wins, key by key. Each function sees in
/// RunContext::model_settings() what was merged before it.
void merge_settings(const RunPtr& run);
/// Throws UserError for a tool_choice, in the fixed settings of agent or run, with which no run could end.
void check_tool_choice(const Json& settings, const OutputPlan& output);
/// The part that records a change of the thinking effort, against what the history recorded last.
std::optional<ModelSettingsDeltaPart> settings_delta(const MessageHistory& history, const ModelSettings& now);

}  // namespace holt::detail
