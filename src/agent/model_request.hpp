// The model request node: a request goes out, a response comes in, both end up in the run's history.
#pragma once

#include "agent/run_state.hpp"

#include <optional>

namespace holt::detail {

/// Appends run->next to the history, sends the history and appends the response. Afterwards run->next is what
/// a hook wants sent next, or nothing: the last message is the response to handle. After an error the request
/// stays in the history, and so does what a broken stream gave.
Task<void> request_model(RunPtr run);

/// A request of this run, with its ids.
ModelRequest make_request(const RunPtr& run, std::vector<RequestPart> parts);

}  // namespace holt::detail
