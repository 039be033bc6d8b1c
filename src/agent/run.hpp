// One run from its first request to its output or error.
#pragma once

#include "agent/agent_data.hpp"

#include <memory>

namespace holt::detail {

/// As Agent::run. Works on a strand of its own over the awaiter's executor.
Task<RawRun> run_agent(std::shared_ptr<const AgentData> data, Prompt prompt, RunOptions options,
                       OutputSpec spec);

}  // namespace holt::detail
