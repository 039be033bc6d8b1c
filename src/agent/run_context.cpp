#include "holt/agent/run_context.hpp"

#include "agent/run_state.hpp"
#include "holt/agent/agent.hpp"

namespace holt {

const std::string& RunContext::run_id() const {
  return run_->run_id;
}
const std::string& RunContext::conversation_id() const {
  return run_->conversation_id;
}
int RunContext::run_step() const {
  return run_->step;
}
const MessageHistory& RunContext::messages() const {
  return run_->messages;
}
const std::optional<UserContent>& RunContext::prompt() const {
  return run_->prompt;
}
const std::shared_ptr<RunUsage>& RunContext::usage() const {
  return run_->usage;
}
const UsageLimits& RunContext::usage_limits() const {
  return run_->options.usage_limits;
}
const Json& RunContext::metadata() const {
  return run_->metadata;
}
const ModelPtr& RunContext::model() const {
  return run_->model;
}
const ModelSettings& RunContext::model_settings() const {
  return run_->settings;
}
const Agent& RunContext::agent() const {
  return run_->agent;
}
const Workspace& RunContext::workspace() const {
  return run_->workspace;
}
const Deps& RunContext::raw_deps() const {
  return run_->options.deps;
}

void RunContext::cancel() const {
  detail::RunState::post_cancel(run_, detail::CancelReason::token);
}

void RunContext::emit(CustomEvent event) const {
  if (!event.tool_call_id && !call_.id.empty()) event.tool_call_id = call_.id;
  run_->emit(*this, event);
}

void* RunContext::deps_object(std::type_index type) const {
  const Deps& deps = run_->options.deps;
  if (!deps.object()) throw UserError("The run was given no deps, and something asks for them");
  if (deps.type() != type) throw UserError("The run was given deps of another type than what is asked for");
  return deps.object().get();
}

}  // namespace holt
