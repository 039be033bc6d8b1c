// The response node: what the last response of the history means for the run.
#pragma once

#include "agent/run_state.hpp"

#include <optional>

namespace holt::detail {

/// Runs the response's calls, or takes its text as output. The output that ends the run, or nothing:
/// run->next is what to send. After an error the answers that were complete are in the history, in a request
/// marked interrupted.
Task<std::optional<RawOutput>> handle_response(RunPtr run);

}  // namespace holt::detail
