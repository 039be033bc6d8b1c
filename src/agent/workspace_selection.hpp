// Which workspace a run gets. Decided once, before capabilities are set up for the run, without I/O.
#pragma once

#include "agent/run_state.hpp"

#include <vector>

namespace holt::detail {

/// Sets the run's workspace and the ref that it carries on. `of_run` and `of_agent` are asked in this order.
/// Throws UserError when what was asked for cannot be had.
void select_workspace(const RunPtr& run, const std::vector<Capability>& of_run,
                      const std::vector<Capability>& of_agent);

}  // namespace holt::detail
