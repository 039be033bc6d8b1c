#include "agent/hooks.hpp"

#include "agent/task_group.hpp"

namespace holt::detail {
namespace {

Task<ModelResponse> wrap_request(RunPtr run, std::size_t index, ModelRequestContext& request,
                                 ModelSender send) {
  if (index == run->capabilities.size()) {
    auto pending = send(run, request);
    co_return co_await std::move(pending);
  }
  RunContext context = context_of(run);
  ModelRequestHandler inner = [run, index, send](ModelRequestContext& next) {
    return wrap_request(run, index + 1, next, send);
  };
  auto pending = run->capabilities[index]->wrap_model_request(context, request, std::move(inner));
  co_return co_await std::move(pending);
}

Task<std::optional<ModelResponse>> recover_request(RunPtr run, ModelRequestContext& request,
                                                   std::exception_ptr error) {
  RunContext context = context_of(run);
  for (std::size_t i = run->capabilities.size(); i > 0; --i) {
    auto pending = run->capabilities[i - 1]->on_model_request_error(context, request, error);
    std::optional<ModelResponse> response = co_await std::move(pending);
    if (response) co_return response;
  }
  co_return std::nullopt;
}

Task<ModelResponse> after_request(RunPtr run, ModelRequestContext& request, ModelResponse response) {
  RunContext context = context_of(run);
  for (std::size_t i = run->capabilities.size(); i > 0; --i) {
    auto pending = run->capabilities[i - 1]->after_model_request(context, request, std::move(response));
    response = co_await std::move(pending);
  }
  co_return response;
}

Task<ToolValue> wrap_call(CallInProgress& progress, std::size_t index, Json arguments) {
  const auto& capabilities = progress.run->capabilities;
  if (index == capabilities.size()) {
    auto pending = progress.tool.tool.call(progress.context, std::move(arguments));
    co_return co_await std::move(pending);
  }
  ToolHandler inner = [&progress, index](Json next) {
    return wrap_call(progress, index + 1, std::move(next));
  };
  auto pending = capabilities[index]->wrap_tool_execute(progress.context, progress.info(),
                                                        std::move(arguments), std::move(inner));
  co_return co_await std::move(pending);
}

/// ModelRetry and its kin: answers of a tool, no failures of it.
bool is_control(std::exception_ptr error) {
  try {
    std::rethrow_exception(error);
  } catch (const ModelRetry&) {
    return true;
  } catch (const ToolFailed&) {
    return true;
  } catch (const ApprovalRequired&) {
    return true;
  } catch (const CallDeferred&) {
    return true;
  } catch (...) {
    return false;
  }
}

Task<ToolValue> before_and_wrap(CallInProgress& progress, Json arguments) {
  for (const auto& capability : progress.run->capabilities) {
    auto pending = capability->before_tool_execute(progress.context, progress.info(), std::move(arguments));
    arguments = co_await std::move(pending);
  }
  auto pending = wrap_call(progress, 0, std::move(arguments));
  co_return co_await std::move(pending);
}

Task<ToolValue> recover_call(CallInProgress& progress, std::exception_ptr error) {
  const auto& capabilities = progress.run->capabilities;
  for (std::size_t i = capabilities.size(); i > 0; --i) {
    auto pending = capabilities[i - 1]->on_tool_execute_error(progress.context, progress.info(), error);
    std::optional<ToolValue> value = co_await std::move(pending);
    if (value) co_return std::move(*value);
  }
  std::rethrow_exception(error);
}

Task<Json> wrap_run(RunPtr run, std::size_t index, Task<Json> (*body)(RunPtr)) {
  if (index == run->capabilities.size()) {
    auto pending = body(run);
    co_return co_await std::move(pending);
  }
  RunContext context = context_of(run);
  RunHandler inner = [run, index, body] { return wrap_run(run, index + 1, body); };
  auto pending = run->capabilities[index]->wrap_run(context, std::move(inner));
  co_return co_await std::move(pending);
}

}  // namespace

Task<ModelResponse> model_request_with_hooks(RunPtr run, ModelRequestContext& request, ModelSender send) {
  std::optional<ModelResponse> response;
  std::exception_ptr failure;
  try {
    auto pending = wrap_request(run, 0, request, send);
    response.emplace(co_await std::move(pending));
  } catch (...) {
    failure = std::current_exception();
  }
  if (failure) {
    if (is_cancellation(failure) || is_control(failure)) std::rethrow_exception(failure);
    auto pending = recover_request(run, request, failure);
    response = co_await std::move(pending);
    if (!response) std::rethrow_exception(failure);
  }
  auto pending = after_request(run, request, std::move(*response));
  co_return co_await std::move(pending);
}

Task<void> before_request_hooks(RunPtr run, ModelRequestContext& request) {
  RunContext context = context_of(run);
  for (const auto& capability : run->capabilities) {
    auto pending = capability->before_model_request(context, request);
    co_await std::move(pending);
  }
}

Task<ToolValue> tool_call_with_hooks(CallInProgress& progress, Json arguments) {
  std::optional<ToolValue> value;
  std::exception_ptr failure;
  try {
    auto pending = before_and_wrap(progress, std::move(arguments));
    value.emplace(co_await std::move(pending));
  } catch (const SkipToolExecution& skip) {
    value = skip.result();
  } catch (...) {
    failure = std::current_exception();
  }
  if (failure) {
    if (is_cancellation(failure) || is_control(failure)) std::rethrow_exception(failure);
    auto pending = recover_call(progress, failure);
    value.emplace(co_await std::move(pending));
  }
  const auto& capabilities = progress.run->capabilities;
  for (std::size_t i = capabilities.size(); i > 0; --i) {
    auto pending =
        capabilities[i - 1]->after_tool_execute(progress.context, progress.info(), std::move(*value));
    value.emplace(co_await std::move(pending));
  }
  co_return std::move(*value);
}

Task<Json> run_with_hooks(RunPtr run, Task<Json> (*body)(RunPtr)) {
  RunContext context = context_of(run);
  for (const auto& capability : run->capabilities) {
    auto pending = capability->before_run(context);
    co_await std::move(pending);
  }
  auto pending = wrap_run(run, 0, body);
  co_return co_await std::move(pending);
}

Task<std::optional<Json>> recover_run(RunPtr run, std::exception_ptr error) {
  RunContext context = context_of(run);
  for (std::size_t i = run->capabilities.size(); i > 0; --i) {
    auto pending = run->capabilities[i - 1]->on_run_error(context, error);
    std::optional<Json> output = co_await std::move(pending);
    if (output) co_return output;
  }
  co_return std::nullopt;
}

Task<Json> finish_run(RunPtr run, Json output) {
  RunContext context = context_of(run);
  for (std::size_t i = run->capabilities.size(); i > 0; --i) {
    auto pending = run->capabilities[i - 1]->after_run(context, std::move(output));
    output = co_await std::move(pending);
  }
  co_return output;
}

}  // namespace holt::detail
