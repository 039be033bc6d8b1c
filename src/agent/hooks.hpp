// The hooks of a run's capabilities, called in the order that capability.hpp promises.
//
// A handler given to a wrap_* hook outlives the hook's own call: it is a lambda that calls a free coroutine,
// whose frame holds what it needs.
#pragma once

#include "agent/run_state.hpp"

#include <functional>

namespace holt::detail {

/// before_model_request; may throw SkipModelRequest.
Task<void> before_request_hooks(RunPtr run, ModelRequestContext& request);

using ModelSender = Task<ModelResponse> (*)(RunPtr run, ModelRequestContext& request);
/// wrap_* around `send`, on_*_error and after_* of a model request.
Task<ModelResponse> model_request_with_hooks(RunPtr run, ModelRequestContext& request, ModelSender send);

/// A tool call on its way; lives in the coroutine that runs it.
struct CallInProgress {
  RunPtr run;
  const ToolCallPart& call;
  const OfferedTool& tool;
  RunContext context;

  ToolCallInfo info() const { return {call, tool.definition}; }
};
/// before_*, wrap_* around the tool's function, on_*_error and after_* of a tool call.
Task<ToolValue> tool_call_with_hooks(CallInProgress& progress, Json arguments);

/// before_run and wrap_run around `body`.
Task<Json> run_with_hooks(RunPtr run, Task<Json> (*body)(RunPtr run));
/// on_run_error, from the last capability to the first: an output that one recovers with, or nothing.
Task<std::optional<Json>> recover_run(RunPtr run, std::exception_ptr error);
/// after_run, from the last capability to the first.
Task<Json> finish_run(RunPtr run, Json output);

}  // namespace holt::detail
