#include "holt/agent/tool.hpp"

#include "agent/wording.hpp"
#include "holt/agent/run_context.hpp"

namespace holt {

ApprovalRequired::ApprovalRequired(Json metadata)
    : Error(ErrorCode::invalid_state, "The tool call needs approval"),
      metadata_(std::make_shared<const Json>(std::move(metadata))) {}

CallDeferred::CallDeferred(Json metadata)
    : Error(ErrorCode::invalid_state, "The tool call is carried out elsewhere"),
      metadata_(std::make_shared<const Json>(std::move(metadata))) {}

SkipToolExecution::SkipToolExecution(ToolValue result)
    : Error(ErrorCode::invalid_state, "The tool call is skipped by a hook"),
      result_(std::make_shared<const ToolValue>(std::move(result))) {}

struct Tool::Data {
  ToolDefinition definition;
  ToolOptions options;
  ToolFunction function;
};

Tool Tool::from_schema(std::string name, std::string description, Json parameters_schema, ToolFunction fn,
                       ToolOptions options) {
  if (name.empty()) throw UserError("A tool needs a name");
  if (!parameters_schema.is_object()) throw UserError("The schema of tool '" + name + "' is no object");
  if (!fn) throw UserError("Tool '" + name + "' has no function");
  if (options.max_retries && *options.max_retries < 0)
    throw UserError("max_retries of tool '" + name + "' must be 0 or more");
  if (options.timeout && !(options.timeout->count() > 0))
    throw UserError(detail::tool_timeout_range_text(options.timeout->count()));
  ToolDefinition definition{.name = std::move(name)};
  if (!description.empty()) definition.description = std::move(description);
  definition.parameters_json_schema = std::move(parameters_schema);
  definition.strict = options.strict;
  definition.sequential = options.sequential;
  definition.kind = options.requires_approval ? ToolKind::unapproved : ToolKind::function;
  definition.metadata = options.metadata;
  if (options.timeout) definition.timeout = options.timeout->count();
  definition.tool_kind = options.tool_kind;
  Data data{std::move(definition), std::move(options), std::move(fn)};
  return Tool(std::make_shared<const Data>(std::move(data)));
}

const ToolDefinition& Tool::definition() const {
  return data_->definition;
}
const ToolOptions& Tool::options() const {
  return data_->options;
}
Task<ToolValue> Tool::call(RunContext& context, Json arguments) const {
  return data_->function(context, std::move(arguments));
}

namespace detail {

std::shared_ptr<RunContext> context_for_thread(const RunContext& context, const CancellationToken& token) {
  RunContext::Call call = context.call();
  call.cancellation = token;
  return std::make_shared<RunContext>(context.state(), std::move(call));
}

void throw_as_retry(const Error& error) {
  throw ModelRetry(error.what());
}

}  // namespace detail
}  // namespace holt
