#include "agent/run_state.hpp"

#include "agent/wording.hpp"
#include "holt/base/error.hpp"

#include <boost/asio/post.hpp>

namespace holt::detail {

void RunState::request_cancel(CancelReason reason) {
  if (cancel_reason == CancelReason::none) cancel_reason = reason;
  if (cancel_body) cancel_body();
}

void RunState::post_cancel(const RunPtr& state, CancelReason reason) {
  boost::asio::post(state->executor, [state, reason] { state->request_cancel(reason); });
}

void RunState::emit(const RunContext& context, const AgentEvent& event) {
  if (!streams) return;
  std::lock_guard lock(event_mutex);
  for (const auto& capability : capabilities)
    if (capability->listens_to_events()) capability->on_event(context, event);
  if (options.event_stream_handler) options.event_stream_handler(context, event);
}

const OfferedTool* RunState::find_tool(const std::string& name) const {
  for (const auto& tool : tools)
    if (tool.definition.name == name) return &tool;
  return nullptr;
}

int RunState::failures_of(const std::string& name) const {
  auto found = tool_failures.find(name);
  return found == tool_failures.end() ? 0 : found->second;
}

RetryInfo RunState::note_tool_failure(const std::string& name, int max_retries, RetryCause cause) {
  const int failures = failures_of(name);
  if (failures >= max_retries) throw UnexpectedModelBehavior(tool_retries_spent_text(name, max_retries));
  failed_now.insert(name);
  RetryInfo info;
  info.cause = cause;
  info.attempt = failures + 1;
  info.max_retries = max_retries;
  return info;
}

RetryInfo RunState::note_output_failure(RetryCause cause) {
  if (output_failures >= retries.output)
    throw UnexpectedModelBehavior(output_retries_spent_text(retries.output));
  RetryInfo info;
  info.cause = cause;
  info.attempt = ++output_failures;
  info.max_retries = retries.output;
  return info;
}

void RunState::end_step() {
  for (const auto& name : failed_now) ++tool_failures[name];
  for (const auto& name : succeeded_now)
    if (!failed_now.contains(name)) tool_failures.erase(name);
  failed_now.clear();
  succeeded_now.clear();
}

std::optional<WorkspaceRef> RunState::current_ref() const {
  return workspace.attached() ? workspace.ref() : carried_ref;
}

void RunState::refresh_ref() {
  for (std::size_t i = messages.size(); i > first_new; --i) {
    auto* response = std::get_if<ModelResponse>(&messages[i - 1]);
    if (!response) continue;
    if (response->run_id == run_id) response->workspace_ref = current_ref();
    return;
  }
}

RunRecord RunState::take_record() {
  RunRecord::Fields fields;
  fields.messages = std::move(messages);
  fields.first_new = first_new;
  fields.usage = *usage;
  fields.run_id = run_id;
  fields.conversation_id = conversation_id;
  fields.metadata = metadata;
  fields.workspace = workspace;
  fields.output_tool_call_id = output_tool_call_id;
  return RunRecord(std::move(fields));
}

}  // namespace holt::detail
