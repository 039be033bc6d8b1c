// The prompt node: what a run starts with, from its history and its prompt.
#pragma once

#include "agent/run_state.hpp"

namespace holt::detail {

/// Repairs the history, which becomes the run's messages, and sets run->next to the first request. Without a
/// next request the last response of the history is to be handled first.
/// Throws UserError when there is nothing to send, or a prompt where calls of the history wait for answers.
Task<void> start_run(RunPtr run);

}  // namespace holt::detail
