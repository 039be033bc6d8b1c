// Everything that one run knows. One object a run, used on the run's strand; what other threads may touch
// says so.
#pragma once

#include "agent/agent_data.hpp"
#include "agent/output_plan.hpp"
#include "holt/agent/agent.hpp"

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <boost/asio/any_io_executor.hpp>

namespace holt::detail {

/// A tool as it is offered in a step.
struct OfferedTool {
  Tool tool;
  ToolDefinition definition;
  int max_retries = 1;
};

/// Why a run is to end before its output.
enum class CancelReason { none, token, timeout, awaiter };

class RunState {
 public:
  RunState(std::shared_ptr<const AgentData> agent_data, const Prompt& said, RunOptions run_options,
           OutputSpec spec)
      : data(std::move(agent_data)),
        agent(data),
        options(std::move(run_options)),
        prompt(said.content()),
        output(std::move(spec)) {}

  const std::shared_ptr<const AgentData> data;
  const Agent agent;
  RunOptions options;
  const std::optional<UserContent> prompt;
  const OutputPlan output;

  boost::asio::any_io_executor executor;
  std::vector<CapabilityPtr> capabilities;  ///< the instances of this run
  Workspace workspace;
  std::optional<WorkspaceRef> carried_ref;  ///< written on responses of a run without workspace
  ModelPtr model;
  Retries retries;
  std::shared_ptr<RunUsage> usage;
  std::string run_id;
  std::string conversation_id;
  Json metadata;

  MessageHistory messages;
  std::size_t first_new = 0;
  std::optional<ModelRequest> next;       ///< to be sent; not in the history yet
  std::optional<ModelResponse> received;  ///< of the request being made, before hooks
  int step = 0;
  ModelSettings settings = Json::object();             ///< of the step
  std::vector<OfferedTool> tools;                      ///< of the step
  std::optional<std::set<std::string>> first_offered;  ///< names on offer in the run's first request

  std::map<std::string, int> tool_failures;  ///< failed steps in a row, by name
  std::set<std::string> failed_now;          ///< names that failed in this step
  std::set<std::string> succeeded_now;
  int output_failures = 0;
  std::optional<std::string> output_tool_call_id;  ///< of the output that won
  std::optional<std::size_t> winner;               ///< its choice in the spec; none: text

  bool streams = false;              ///< somebody listens, so every request is streamed
  std::recursive_mutex event_mutex;  ///< a listener may tell something itself

  CancelReason cancel_reason = CancelReason::none;  ///< first writer wins
  std::function<void()> cancel_body;                ///< cancels the run's coroutine; null when there is none

  /// Stops the run. On the strand.
  void request_cancel(CancelReason reason);
  /// The same from any thread.
  static void post_cancel(const std::shared_ptr<RunState>& state, CancelReason reason);
  /// Tells all listeners. From any thread.
  void emit(const RunContext& context, const AgentEvent& event);

  const OfferedTool* find_tool(const std::string& name) const;
  int failures_of(const std::string& name) const;
  /// Counts a failed try of a step once. Throws UnexpectedModelBehavior when none is left.
  RetryInfo note_tool_failure(const std::string& name, int max_retries, RetryCause cause);
  /// Counts a failure of the output. Throws UnexpectedModelBehavior when none is left.
  RetryInfo note_output_failure(RetryCause cause);
  /// Brings the counters of the step that ends forward.
  void end_step();

  /// What a response made now records.
  std::optional<WorkspaceRef> current_ref() const;
  /// Brings the last response of this run up to date with current_ref().
  void refresh_ref();

  /// The run's record, at its end: the messages move there.
  RunRecord take_record();
};

using RunPtr = std::shared_ptr<RunState>;

inline RunContext context_of(const RunPtr& run) {
  return RunContext(run, RunContext::Call());
}

}  // namespace holt::detail
