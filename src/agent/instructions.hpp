// Instructions and system prompts of a run, made from texts and functions.
#pragma once

#include "agent/run_state.hpp"

#include <optional>
#include <string>
#include <vector>

namespace holt::detail {

/// Static blocks first, then those of functions; each in order of agent, capabilities, run.
Task<std::vector<InstructionPart>> instruction_blocks(RunPtr run);
/// The blocks as ModelRequest.instructions stores them: joined by blank lines, stripped; nothing when empty.
std::optional<std::string> join_instructions(const std::vector<InstructionPart>& blocks);

/// The parts in front of the first prompt of a conversation.
Task<std::vector<RequestPart>> system_prompt_parts(RunPtr run);
/// Evaluates the dynamic system prompts that the history holds again, in place.
Task<void> refresh_system_prompts(RunPtr run);

}  // namespace holt::detail
