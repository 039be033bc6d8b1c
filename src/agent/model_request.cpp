#include "agent/model_request.hpp"

#include "agent/hooks.hpp"
#include "agent/instructions.hpp"
#include "agent/settings.hpp"
#include "agent/step.hpp"
#include "agent/wording.hpp"
#include "holt/base/error.hpp"
#include "holt/base/log.hpp"
#include "holt/messages/repair.hpp"

#include <algorithm>

namespace holt::detail {
namespace {

ModelRequest& last_request(const RunPtr& run) {
  return std::get<ModelRequest>(run->messages.back());
}

bool has_values(const RequestUsage& usage) {
  return usage.input_tokens || usage.output_tokens || usage.cache_read_tokens || usage.cache_write_tokens ||
         usage.input_audio_tokens || usage.output_audio_tokens || usage.cache_audio_read_tokens ||
         !usage.details.empty();
}

/// A call without an id gets one, and the kind of its tool.
void complete_call(const RunPtr& run, ResponsePart& part) {
  auto* call = std::get_if<ToolCallPart>(&part);
  if (!call) return;
  if (call->tool_call_id.empty()) call->tool_call_id = generate_tool_call_id();
  if (call->tool_kind) return;
  if (const auto* tool = run->find_tool(call->tool_name)) call->tool_kind = tool->definition.tool_kind;
}

/// The response becomes part of the run, and its usage counts.
void commit(const RunPtr& run, ModelResponse response) {
  response.run_id = run->run_id;
  response.conversation_id = run->conversation_id;
  response.workspace_ref = run->current_ref();
  for (auto& part : response.parts) complete_call(run, part);
  if (!has_values(response.usage) && response.usage.unmeasured_requests == 0) {
    response.usage.unmeasured_requests = 1;
    if (run->options.usage_limits.limits_tokens())
      logger("agent")->warn("The model reports no usage, so limits on tokens cannot be kept");
  }
  ++run->usage->requests;
  run->usage->add(response.usage);
  run->messages.emplace_back(std::move(response));
}

MessageHistory outgoing(const ModelRequestContext& request) {
  MessageHistory copy = request.messages;
  copy = repair_history(std::move(copy), RepairLastResponse::repair).messages;
  copy = request.model->prepare(std::move(copy), request.parameters);
  return repair_history(std::move(copy), RepairLastResponse::repair).messages;
}

Task<ModelResponse> send_streamed(RunPtr run, ModelRequestContext& request) {
  StreamedResponse stream;
  const RunContext context = context_of(run);
  stream.on_event = [&run, &context](const ModelStreamEvent& event) {
    std::visit([&](const auto& one) { run->emit(context, AgentEvent(one)); }, event);
  };
  std::exception_ptr failure;
  try {
    auto pending =
        request.model->request_stream(outgoing(request), request.settings, request.parameters, stream);
    co_await std::move(pending);
  } catch (...) {
    failure = std::current_exception();
  }
  if (failure) {
    stream.response.state = ResponseState::interrupted;
    if (!stream.response.parts.empty()) commit(run, std::move(stream.response));
    std::rethrow_exception(failure);
  }
  co_return std::move(stream.response);
}

Task<ModelResponse> send(RunPtr run, ModelRequestContext& request) {
  if (run->streams) {
    auto pending = send_streamed(run, request);
    co_return co_await std::move(pending);
  }
  auto pending = request.model->request(outgoing(request), request.settings, request.parameters);
  co_return co_await std::move(pending);
}

/// send(), and the response kept for a hook that asks for another try.
Task<ModelResponse> send_and_keep(RunPtr run, ModelRequestContext& request) {
  auto pending = send(run, request);
  ModelResponse response = co_await std::move(pending);
  run->received = response;
  co_return response;
}

/// Parts at the request's end that record what changed for the model.
void record_changes(const RunPtr& run, const ModelRequestContext& request) {
  const RunContext context = context_of(run);
  if (auto part = availability_delta(run)) {
    last_request(run).parts.emplace_back(*part);
    run->emit(context, ToolAvailabilityDeltaEvent{*part});
  }
  if (!request.model->profile().flag("supports_thinking")) return;
  if (auto part = settings_delta(run->messages, request.settings)) {
    last_request(run).parts.emplace_back(*part);
    run->emit(context, ModelSettingsDeltaEvent{*part});
  }
}

void check_processed_history(const MessageHistory& history) {
  if (history.empty()) throw UserError(std::string(k_history_empty));
  if (!std::holds_alternative<ModelRequest>(history.back())) throw UserError(std::string(k_history_end));
}

ModelRequest model_retry_request(const RunPtr& run, const std::string& message) {
  RetryFeedbackPart part;
  part.content = message;
  part.retry = run->note_output_failure(RetryCause::model_retry);
  std::vector<RequestPart> parts;
  parts.emplace_back(std::move(part));
  return make_request(run, std::move(parts));
}

/// Steps 3 to 8: everything before the request goes out.
Task<void> prepare(RunPtr run, ModelRequestContext& request) {
  prepare_step_tools(run);
  auto blocks_pending = instruction_blocks(run);
  std::vector<InstructionPart> blocks = co_await std::move(blocks_pending);
  last_request(run).instructions = join_instructions(blocks);
  merge_settings(run);
  run->options.usage_limits.check_before_request(*run->usage);
  request.settings = run->settings;
  request.parameters = request_parameters(run, std::move(blocks));
  const auto size_before = run->messages.size();
  auto hooks = before_request_hooks(run, request);
  co_await std::move(hooks);
  const auto size = run->messages.size();
  if (size < size_before)
    run->first_new -= std::min(run->first_new, size_before - size);
  else
    run->first_new += size - size_before;
  check_processed_history(run->messages);
  record_changes(run, request);
}

void check_limits(const RunPtr& run) {
  auto& response = std::get<ModelResponse>(run->messages.back());
  try {
    run->options.usage_limits.check_after_response(*run->usage, response.usage);
  } catch (const UsageLimitExceeded&) {
    response.state = ResponseState::interrupted;
    throw;
  }
}

Task<std::optional<ModelRequest>> exchange(RunPtr run) {
  ModelRequestContext request{run->model, run->messages, {}, {}};
  std::optional<ModelResponse> response;
  std::optional<std::string> retry;
  run->received.reset();
  try {
    auto prepared = prepare(run, request);
    co_await std::move(prepared);
    auto pending = model_request_with_hooks(run, request, send_and_keep);
    response.emplace(co_await std::move(pending));
  } catch (const SkipModelRequest& skip) {
    response = skip.response();
  } catch (const ModelRetry& e) {
    retry = e.what();
    response = std::move(run->received);
  }
  if (response) {
    commit(run, std::move(*response));
    check_limits(run);
  }
  if (retry) co_return model_retry_request(run, *retry);
  co_return std::nullopt;
}

void drop_request_scoped(const RunPtr& run) {
  auto* request = run->messages.empty() ? nullptr : std::get_if<ModelRequest>(&run->messages.back());
  if (!request) return;
  std::erase_if(request->parts, [](const RequestPart& part) {
    const auto* system = std::get_if<SystemPromptPart>(&part);
    return system && system->scope == SystemPromptScope::request;
  });
}

}  // namespace

ModelRequest make_request(const RunPtr& run, std::vector<RequestPart> parts) {
  ModelRequest request;
  request.parts = std::move(parts);
  request.run_id = run->run_id;
  request.conversation_id = run->conversation_id;
  return request;
}

Task<void> request_model(RunPtr run) {
  ModelRequest request = std::move(*run->next);
  run->next.reset();
  run->end_step();
  request.timestamp = Timestamp::now();
  if (!request.run_id) request.run_id = run->run_id;
  if (!request.conversation_id) request.conversation_id = run->conversation_id;
  run->refresh_ref();
  run->messages.emplace_back(std::move(request));
  ++run->step;
  std::exception_ptr failure;
  try {
    auto pending = exchange(run);
    run->next = co_await std::move(pending);
  } catch (...) {
    failure = std::current_exception();
  }
  if (failure) {
    drop_request_scoped(run);
    std::rethrow_exception(failure);
  }
}

}  // namespace holt::detail
