#include "holt/agent/agent.hpp"

#include "agent/agent_data.hpp"
#include "agent/run.hpp"
#include "agent/wording.hpp"
#include "holt/base/error.hpp"

#include <set>

#include <fmt/format.h>

namespace holt {
namespace detail {
namespace {

void check_tool_names(const std::vector<Tool>& tools) {
  std::set<std::string> names;
  for (const auto& tool : tools)
    if (!names.insert(tool.name()).second)
      throw UserError(fmt::format("Two tools have the name '{}'", tool.name()));
}

void check_metadata(const Json& metadata) {
  if (!metadata.is_null() && !metadata.is_object()) throw InvalidArgument("metadata must be a JSON object");
}

std::shared_ptr<const AgentData> make_agent_data(ModelChoice model, AgentOptions options) {
  check_retries(options.retries);
  if (options.tool_timeout && !(options.tool_timeout->count() > 0))
    throw InvalidArgument(tool_timeout_range_text(options.tool_timeout->count()));
  check_tool_names(options.tools);
  check_metadata(options.metadata);
  AgentData data;
  data.capabilities = arrange_capabilities(options.capabilities, {});
  if (!options.defer_model_check && !model.empty()) data.model = model.resolve();
  data.model_choice = std::move(model);
  data.options = std::move(options);
  return std::make_shared<const AgentData>(std::move(data));
}

}  // namespace

void check_retries(const Retries& retries) {
  if (retries.tools < 0 || retries.output < 0) throw InvalidArgument("retries must be 0 or more");
}

void check_duration(const char* name, const std::optional<Seconds>& duration) {
  if (duration && !(duration->count() > 0))
    throw InvalidArgument(fmt::format("{} must be above 0, not {}", name, short_number(duration->count())));
}

}  // namespace detail

ModelPtr ModelChoice::resolve() const {
  if (model_) return model_;
  if (!id_) throw UserError(std::string(detail::k_no_model));
  return make_model(*id_);
}

Agent::Agent(ModelChoice model, AgentOptions options)
    : data_(detail::make_agent_data(std::move(model), std::move(options))) {}
Agent::Agent(AgentOptions options) : Agent(ModelChoice(), std::move(options)) {}

Task<detail::RawRun> Agent::run_raw(Prompt prompt, RunOptions options, OutputSpec spec) const {
  return detail::run_agent(data_, std::move(prompt), std::move(options), std::move(spec));
}

Task<RunResult<>> Agent::run(Prompt prompt) const {
  return run(std::move(prompt), RunOptions());
}

Task<RunResult<>> Agent::run(Prompt prompt, RunOptions options) const {
  return typed_run<std::string>(run_raw(std::move(prompt), std::move(options), OutputSpec()));
}

RunResult<> Agent::run_sync(Prompt prompt, RunOptions options) const {
  return sync_wait(run(std::move(prompt), std::move(options)));
}

const std::string& Agent::name() const {
  return data_->options.name;
}
const std::string& Agent::description() const {
  return data_->options.description;
}
const std::vector<Capability>& Agent::capabilities() const {
  return data_->capabilities;
}

}  // namespace holt
