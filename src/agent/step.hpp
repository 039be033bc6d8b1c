// What a step offers to the model: tools, output tools, output mode.
#pragma once

#include "agent/run_state.hpp"

namespace holt::detail {

/// Asks agent, capabilities and run for their tools and prepares them. Throws UserError for two of one name.
void prepare_step_tools(const RunPtr& run);
/// Parameters for the run's model: the step's tools, the run's output, the instruction blocks.
ModelRequestParameters request_parameters(const RunPtr& run, std::vector<InstructionPart> blocks);
/// The tools on offer that the run's first request did not offer, as a part for the history.
std::optional<ToolAvailabilityDeltaPart> availability_delta(const RunPtr& run);

}  // namespace holt::detail
