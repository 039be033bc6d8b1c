#include "agent/run.hpp"

#include "agent/hooks.hpp"
#include "agent/model_request.hpp"
#include "agent/prompt_node.hpp"
#include "agent/response_node.hpp"
#include "agent/run_state.hpp"
#include "agent/settings.hpp"
#include "agent/task_group.hpp"
#include "agent/wording.hpp"
#include "agent/workspace_selection.hpp"
#include "holt/base/error.hpp"
#include "holt/base/ids.hpp"

#include <algorithm>

#include <boost/asio.hpp>

namespace holt::detail {
namespace asio = boost::asio;
namespace {

std::optional<std::string> conversation_of(const MessageHistory& history) {
  for (auto message = history.rbegin(); message != history.rend(); ++message) {
    const auto& id = std::visit([](const auto& m) -> const auto& { return m.conversation_id; }, *message);
    if (id) return id;
  }
  return std::nullopt;
}

bool knows_run(const MessageHistory& history, const std::string& run_id) {
  return std::any_of(history.begin(), history.end(), [&](const ModelMessage& message) {
    return std::visit([&](const auto& m) { return m.run_id == run_id; }, message);
  });
}

void set_ids(RunState& run) {
  run.run_id = run.options.run_id.value_or(uuid7());
  if (run.run_id.empty()) throw UserError("run_id must not be empty");
  if (run.options.run_id && knows_run(run.messages, run.run_id))
    throw UserError("run_id '" + printable(run.run_id, 80) + "' is already that of a run in the history");
  auto conversation = run.options.conversation_id;
  if (!conversation) conversation = conversation_of(run.messages);
  run.conversation_id = !conversation || conversation == "new" ? uuid7() : *conversation;
}

ModelPtr model_of(const RunState& run) {
  if (!run.options.model.empty()) return run.options.model.resolve();
  if (run.data->model) return run.data->model;
  if (!run.data->model_choice.empty()) return run.data->model_choice.resolve();
  throw UserError(std::string(k_no_model));
}

/// The capabilities' instances for this run, then the model as they wrap it.
void set_up_capabilities(const RunPtr& run, const std::vector<Capability>& arranged) {
  const RunContext context = context_of(run);
  for (const auto& capability : arranged) {
    CapabilityPtr own = capability->for_run(context);
    run->capabilities.push_back(own ? own : capability.object());
  }
  for (std::size_t i = run->capabilities.size(); i > 0; --i)
    run->model = run->capabilities[i - 1]->wrap_model(context, run->model);
  run->streams = static_cast<bool>(run->options.event_stream_handler) ||
                 std::any_of(run->capabilities.begin(), run->capabilities.end(),
                             [](const auto& capability) { return capability->listens_to_events(); });
}

void set_up(const RunPtr& run) {
  auto& options = run->options;
  run->messages = std::move(options.message_history);
  run->retries = options.retries.value_or(run->data->options.retries);
  check_retries(run->retries);
  check_duration("timeout", options.timeout);
  run->usage = options.usage ? options.usage : std::make_shared<RunUsage>();
  run->metadata = options.metadata.is_null() ? run->data->options.metadata : options.metadata;
  set_ids(*run);
  run->model = model_of(*run);
  check_tool_choice(run->data->options.model_settings.settings(), run->output);
  check_tool_choice(options.model_settings.settings(), run->output);
  const auto of_run = flatten_capabilities(options.capabilities);
  select_workspace(run, of_run, run->data->capabilities);
  set_up_capabilities(run, of_run.empty()
                               ? run->data->capabilities
                               : arrange_capabilities(run->data->options.capabilities, options.capabilities));
}

Task<Json> run_to_output(RunPtr run) {
  auto started = start_run(run);
  co_await std::move(started);
  for (;;) {
    if (run->next) {
      auto pending = request_model(run);
      co_await std::move(pending);
      if (run->next) continue;
    }
    auto pending = handle_response(run);
    std::optional<RawOutput> output = co_await std::move(pending);
    if (!output) continue;
    run->winner = output->choice;
    co_return std::move(output->value);
  }
}

Task<void> run_body(RunPtr run, std::optional<Json>& output) {
  auto pending = run_with_hooks(run, run_to_output);
  output.emplace(co_await std::move(pending));
}

/// Answers of tools that no request has taken along any more.
void keep_pending_answers(RunState& run) {
  if (!run.next) return;
  const bool answers =
      std::any_of(run.next->parts.begin(), run.next->parts.end(),
                  [](const RequestPart& part) { return std::holds_alternative<ToolReturnPart>(part); });
  if (answers) {
    run.next->timestamp = Timestamp::now();
    run.next->state = RequestState::interrupted;
    run.messages.emplace_back(std::move(*run.next));
  }
  run.next.reset();
}

std::exception_ptr as_run_error(CancelReason reason, std::exception_ptr error) {
  switch (reason) {
    case CancelReason::none:
      return error;
    case CancelReason::timeout:
      return std::make_exception_ptr(RunTimedOut());
    case CancelReason::token:
    case CancelReason::awaiter:
      break;
  }
  return std::make_exception_ptr(RunCancelled());
}

[[noreturn]] void rethrow_with_record(std::exception_ptr error, std::shared_ptr<const RunRecord> record) {
  try {
    std::rethrow_exception(error);
  } catch (Error& e) {
    e.attach(std::move(record));
    throw;
  }
}

/// Runs the body and cancels it when the token, the clock, a tool or the awaiter says so.
Task<void> run_cancellable(RunPtr run, std::optional<Json>& output, std::exception_ptr& error) {
  TaskGroup body(run->executor);
  run->cancel_body = [&body] { body.cancel(); };
  CancellationToken::Registration registration;
  if (run->options.cancellation_token)
    registration = run->options.cancellation_token->on_cancel(
        [run] { RunState::post_cancel(run, CancelReason::token); });
  asio::steady_timer timer(run->executor);
  if (run->options.timeout) {
    timer.expires_after(to_nanoseconds(*run->options.timeout));
    timer.async_wait([run](boost::system::error_code failure) {
      if (!failure) run->request_cancel(CancelReason::timeout);
    });
  }
  body.on_cancel([run] {
    if (run->cancel_reason == CancelReason::none) run->cancel_reason = CancelReason::awaiter;
  });
  if (run->options.cancellation_token && run->options.cancellation_token->cancelled()) {
    run->cancel_reason = CancelReason::token;
    error = std::make_exception_ptr(RunCancelled());
  } else {
    body.spawn(run_body(run, output));
  }
  auto joined = body.join();
  co_await std::move(joined);
  run->cancel_body = nullptr;
  timer.cancel();
  if (body.error()) error = body.error();
}

/// What supervise() leaves behind.
struct RunEnd {
  std::shared_ptr<RunRecord> record;
  std::optional<RawOutput> output;
};

/// Ends the run: hooks, record, caller's callback. On the strand; nothing cancels it any more but the
/// awaiter.
Task<void> supervise(RunPtr run, std::shared_ptr<RunEnd> end) {
  co_await asio::this_coro::throw_if_cancelled(false);
  std::optional<Json> output;
  std::exception_ptr error;
  auto body = run_cancellable(run, output, error);
  co_await std::move(body);
  co_await asio::this_coro::reset_cancellation_state(asio::enable_terminal_cancellation());
  if (error) error = as_run_error(run->cancel_reason, error);
  try {
    if (error) {
      auto pending = recover_run(run, error);
      output = co_await std::move(pending);
    }
    if (output) {
      auto pending = finish_run(run, std::move(*output));
      output = co_await std::move(pending);
      error = nullptr;
    }
  } catch (...) {
    error = std::current_exception();
  }
  keep_pending_answers(*run);
  run->refresh_ref();
  auto record = std::make_shared<RunRecord>(run->take_record());
  if (run->options.on_end) run->options.on_end(*record);
  if (error) rethrow_with_record(error, record);
  end->record = std::move(record);
  end->output = RawOutput{std::move(*output), run->winner};
}

}  // namespace

Task<RawRun> run_agent(std::shared_ptr<const AgentData> data, Prompt prompt, RunOptions options,
                       OutputSpec spec) {
  auto strand = asio::make_strand(co_await asio::this_coro::executor);
  auto run = std::make_shared<RunState>(std::move(data), prompt, std::move(options), std::move(spec));
  run->executor = strand;
  set_up(run);
  auto end = std::make_shared<RunEnd>();
  auto pending = asio::co_spawn(strand, supervise(run, end), asio::use_awaitable);
  co_await std::move(pending);
  co_return RawRun{std::move(*end->record), std::move(*end->output)};
}

}  // namespace holt::detail
