// What an Agent holds: its options, looked through once.
#pragma once

#include "holt/agent/agent.hpp"

#include <vector>

namespace holt::detail {

struct AgentData {
  ModelChoice model_choice;
  ModelPtr model;  ///< null: resolved in each run, or given with the run
  AgentOptions options;
  std::vector<Capability> capabilities;  ///< arranged
};

/// Capabilities and those that they consist of, in the order in which they act: the agent's, then the run's,
/// moved as their orderings demand. Of one id, a run's replaces the agent's, and two of one list are
/// combined. Throws UserError where that cannot be done.
std::vector<Capability> arrange_capabilities(const std::vector<Capability>& of_agent,
                                             const std::vector<Capability>& of_run);
/// The capabilities and, behind each, those that it consists of.
std::vector<Capability> flatten_capabilities(const std::vector<Capability>& capabilities);

/// Throws InvalidArgument for numbers out of range.
void check_retries(const Retries& retries);
void check_duration(const char* name, const std::optional<Seconds>& duration);

}  // namespace holt::detail
