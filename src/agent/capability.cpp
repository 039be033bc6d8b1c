#include "holt/agent/capability.hpp"

#include "holt/agent/run_context.hpp"

namespace holt {

SkipModelRequest::SkipModelRequest(ModelResponse response)
    : Error(ErrorCode::invalid_state, "The model request is skipped by a hook"),
      response_(std::make_shared<const ModelResponse>(std::move(response))) {}

CapabilityBase::~CapabilityBase() = default;

CapabilityPtr CapabilityBase::combine(CapabilityPtr) const {
  return nullptr;
}
std::vector<Capability> CapabilityBase::parts() const {
  return {};
}
CapabilityPtr CapabilityBase::for_run(const RunContext&) const {
  return nullptr;
}
std::vector<Tool> CapabilityBase::tools(const RunContext&) const {
  return {};
}
ModelPtr CapabilityBase::wrap_model(const RunContext&, ModelPtr model) const {
  return model;
}

WorkspaceBackendPtr CapabilityBase::get_workspace(const RunContext&,
                                                  const std::optional<WorkspaceRef>&) const {
  return nullptr;
}

Task<void> CapabilityBase::before_run(RunContext&) const {
  co_return;
}
Task<Json> CapabilityBase::wrap_run(RunContext&, RunHandler handler) const {
  return handler();
}
Task<Json> CapabilityBase::after_run(RunContext&, Json output) const {
  co_return output;
}
Task<std::optional<Json>> CapabilityBase::on_run_error(RunContext&, std::exception_ptr) const {
  co_return std::nullopt;
}

std::vector<ToolDefinition> CapabilityBase::prepare_tools(const RunContext&,
                                                          std::vector<ToolDefinition> tools) const {
  return tools;
}

Task<void> CapabilityBase::before_model_request(RunContext&, ModelRequestContext&) const {
  co_return;
}
Task<ModelResponse> CapabilityBase::wrap_model_request(RunContext&, ModelRequestContext& request,
                                                       ModelRequestHandler handler) const {
  return handler(request);
}
Task<ModelResponse> CapabilityBase::after_model_request(RunContext&, const ModelRequestContext&,
                                                        ModelResponse response) const {
  co_return response;
}
Task<std::optional<ModelResponse>> CapabilityBase::on_model_request_error(RunContext&,
                                                                          const ModelRequestContext&,
                                                                          std::exception_ptr) const {
  co_return std::nullopt;
}

Task<Json> CapabilityBase::before_tool_validate(RunContext&, ToolCallInfo, Json arguments) const {
  co_return arguments;
}
Task<Json> CapabilityBase::before_tool_execute(RunContext&, ToolCallInfo, Json arguments) const {
  co_return arguments;
}
Task<ToolValue> CapabilityBase::wrap_tool_execute(RunContext&, ToolCallInfo, Json arguments,
                                                  ToolHandler handler) const {
  return handler(std::move(arguments));
}
Task<ToolValue> CapabilityBase::after_tool_execute(RunContext&, ToolCallInfo, ToolValue result) const {
  co_return result;
}
Task<std::optional<ToolValue>> CapabilityBase::on_tool_execute_error(RunContext&, ToolCallInfo,
                                                                     std::exception_ptr) const {
  co_return std::nullopt;
}

void CapabilityBase::on_event(const RunContext&, const AgentEvent&) const {}

Capability::Capability(CapabilityPtr object) : object_(std::move(object)) {
  if (!object_) throw InvalidArgument("A capability must not be null");
}

}  // namespace holt
