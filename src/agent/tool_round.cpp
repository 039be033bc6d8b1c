#include "agent/tool_round.hpp"

#include "agent/hooks.hpp"
#include "agent/task_group.hpp"
#include "agent/wording.hpp"
#include "holt/agent/validation.hpp"
#include "holt/base/error.hpp"

#include <algorithm>
#include <map>
#include <set>

#include <boost/asio/this_coro.hpp>
#include <fmt/format.h>

namespace holt::detail {
namespace asio = boost::asio;

ToolRound::ToolRound(RunPtr run, std::vector<ToolCallPart> calls, std::string text, Cut cut)
    : run_(std::move(run)), text_(std::move(text)), cut_(cut) {
  slots_.reserve(calls.size());
  for (auto& call : calls) slots_.push_back(Slot{.call = std::move(call)});
  classify();
}

void ToolRound::classify() {
  for (auto& slot : slots_) {
    if (auto choice = run_->output.choice_of_tool(slot.call.tool_name)) {
      slot.kind = Kind::output;
      slot.choice = *choice;
    } else if ((slot.tool = run_->find_tool(slot.call.tool_name))) {
      slot.kind = Kind::function;
    }
  }
}

void ToolRound::check_ids() const {
  std::map<std::string, int> seen;
  std::vector<std::string> repeated;
  for (const auto& slot : slots_)
    if (slot.kind != Kind::output && ++seen[slot.call.tool_call_id] == 2)
      repeated.push_back(slot.call.tool_call_id);
  if (!repeated.empty()) throw UnexpectedModelBehavior(call_ids_repeat_text(repeated));
}

void ToolRound::check_tool_limit() const {
  const auto calls = std::count_if(slots_.begin(), slots_.end(),
                                   [](const Slot& slot) { return slot.kind == Kind::function; });
  if (calls > 0) run_->options.usage_limits.check_before_tool_calls(*run_->usage, calls);
}

Task<std::optional<RawOutput>> ToolRound::process() {
  check_ids();
  if (cut_ == Cut::at_token_limit) {
    refuse_cut_calls();
    co_return std::nullopt;
  }
  if (run_->data->options.end_strategy == EndStrategy::early) {
    auto pending = process_early();
    co_await std::move(pending);
  } else {
    auto pending = process_in_order();
    co_await std::move(pending);
  }
  settle();
  co_return winner_;
}

/// Arguments that end where the response was cut may look whole, so nothing of it runs.
void ToolRound::refuse_cut_calls() {
  for (auto& slot : slots_) {
    if (slot.kind == Kind::output)
      ask_output_again(slot, std::string(k_calls_cut), RetryCause::model_retry);
    else
      ask_again(slot, std::string(k_calls_cut), RetryCause::model_retry);
    if (slot.spent) std::rethrow_exception(slot.spent);
  }
}

Task<void> ToolRound::process_early() {
  const bool only_functions =
      std::none_of(slots_.begin(), slots_.end(), [](const Slot& slot) { return slot.kind == Kind::output; });
  if (only_functions && run_->output.takes_json_text() && !text_.empty()) {
    if (auto output = run_->output.check_text(text_)) winner_ = std::move(*output);
  }
  for (auto& slot : slots_)
    if (slot.kind == Kind::output) process_output(slot);
  std::vector<Slot*> functions;
  for (auto& slot : slots_) {
    if (slot.kind == Kind::output) continue;
    if (winner_)
      answer_skipped(slot, k_tool_skipped);
    else
      functions.push_back(&slot);
  }
  if (functions.empty()) co_return;
  check_tool_limit();
  auto pending = run_group(std::move(functions));
  co_await std::move(pending);
}

Task<void> ToolRound::process_in_order() {
  check_tool_limit();
  std::vector<Slot*> group;
  for (auto& slot : slots_) {
    if (slot.kind != Kind::output) {
      group.push_back(&slot);
      continue;
    }
    if (!group.empty()) {
      auto pending = run_group(std::exchange(group, {}));
      co_await std::move(pending);
    }
    process_output(slot);
  }
  if (group.empty()) co_return;
  auto pending = run_group(std::move(group));
  co_await std::move(pending);
}

Task<void> ToolRound::run_group(std::vector<Slot*> group) {
  for (auto* slot : group) {
    auto pending = validate(*slot);
    co_await std::move(pending);
  }
  const bool one_by_one = run_->data->options.tool_execution == ToolExecution::sequential;
  std::vector<Slot*> batch;
  for (auto* slot : group) {
    if (!slot->arguments) continue;
    const bool barrier = one_by_one || slot->tool->definition.sequential;
    if (barrier && !batch.empty()) {
      auto pending = run_batch(std::exchange(batch, {}));
      co_await std::move(pending);
    }
    batch.push_back(slot);
    if (!barrier) continue;
    auto pending = run_batch(std::exchange(batch, {}));
    co_await std::move(pending);
  }
  if (batch.empty()) co_return;
  auto pending = run_batch(std::move(batch));
  co_await std::move(pending);
}

Task<void> ToolRound::run_batch(std::vector<Slot*> batch) {
  TaskGroup group(co_await asio::this_coro::executor, TaskGroup::OnError::cancel_others);
  for (auto* slot : batch) group.spawn(run_call(*slot));
  auto joined = group.join();
  co_await std::move(joined);
  if (group.error()) std::rethrow_exception(group.error());
}

Task<void> ToolRound::validate(Slot& slot) {
  RunContext context(run_, call_info(slot));
  std::optional<Json> problem;
  RetryCause cause = RetryCause::validation_error;
  if (slot.kind == Kind::unknown) {
    std::vector<std::string> known;
    for (const auto& tool : run_->tools) known.push_back(tool.definition.name);
    for (const auto& tool : run_->output.tools()) known.push_back(tool.name);
    problem = unknown_tool_text(slot.call.tool_name, std::move(known));
    cause = RetryCause::unknown_tool;
  } else {
    const ToolCallInfo info{slot.call, slot.tool->definition};
    Json arguments = slot.call.args;
    for (const auto& capability : run_->capabilities) {
      auto pending = capability->before_tool_validate(context, info, std::move(arguments));
      arguments = co_await std::move(pending);
    }
    auto checked = validate_arguments(slot.tool->definition.parameters_json_schema, arguments);
    if (!checked) problem = error_items_to_json(checked.error());
    try {
      const auto& check = slot.tool->tool.options().check_arguments;
      if (checked && check) check(context, *checked);
    } catch (const ModelRetry& e) {
      problem = e.what();
      cause = RetryCause::model_retry;
    }
    if (!problem) slot.arguments = std::move(*checked);
  }
  run_->emit(context, FunctionToolCallEvent{slot.call, !problem});
  if (!problem) co_return;
  ask_again(slot, std::move(*problem), cause);
  run_->emit(context, FunctionToolResultEvent{*slot.answer, std::nullopt});
}

namespace {

Task<void> execute(CallInProgress& progress, Json arguments, std::optional<ToolValue>& value) {
  auto pending = tool_call_with_hooks(progress, std::move(arguments));
  value.emplace(co_await std::move(pending));
}

std::optional<Seconds> timeout_of(const ToolDefinition& definition) {
  if (!definition.timeout) return std::nullopt;
  return Seconds(*definition.timeout);
}

[[noreturn]] void refuse_deferral(const std::string& name) {
  throw UserError(
      fmt::format("A call of tool '{}' waits for an answer from outside the run, and deferred tool "
                  "requests are not among the run's output types",
                  name));
}

}  // namespace

Task<void> ToolRound::run_call(Slot& slot) {
  if (slot.tool->definition.kind == ToolKind::unapproved || slot.tool->definition.kind == ToolKind::external)
    refuse_deferral(slot.call.tool_name);
  CallInProgress progress{run_, slot.call, *slot.tool, RunContext(run_, call_info(slot))};
  const auto timeout = timeout_of(slot.tool->definition);
  std::optional<ToolValue> value;
  std::optional<std::string> retry;
  std::optional<std::string> failed;
  std::exception_ptr cancelled;
  try {
    auto work = execute(progress, std::move(*slot.arguments), value);
    auto pending = run_with_timeout(std::move(work), timeout, progress.context.cancellation());
    if (co_await std::move(pending) == TimedEnd::timed_out) {
      value.reset();
      retry = timed_out_text(timeout->count());
    }
  } catch (const ModelRetry& e) {
    retry = e.what();
  } catch (const ToolFailed& e) {
    failed = e.what();
  } catch (const ApprovalRequired&) {
    refuse_deferral(slot.call.tool_name);
  } catch (const CallDeferred&) {
    refuse_deferral(slot.call.tool_name);
  } catch (const RunCancelled& e) {
    failed = fmt::format("Sub-agent cancelled: {}", e.what());
    cancelled = std::current_exception();
  }
  if (cancelled) {
    auto state = co_await asio::this_coro::cancellation_state;
    if (state.cancelled() != asio::cancellation_type::none) std::rethrow_exception(cancelled);
  }
  if (retry)
    ask_again(slot, std::move(*retry), RetryCause::model_retry);
  else if (failed)
    answer(slot, std::move(*failed), ToolOutcome::failed);
  else
    answer_value(slot, std::move(*value));
  run_->emit(progress.context, FunctionToolResultEvent{*slot.answer, slot.extra});
}

void ToolRound::process_output(Slot& slot) {
  const RunContext context(run_, call_info(slot));
  const bool exhaustive = run_->data->options.end_strategy == EndStrategy::exhaustive;
  if (winner_ && !exhaustive) {
    answer_skipped(slot, k_output_skipped);
    return;
  }
  auto checked = run_->output.check_arguments(slot.choice, slot.call.args);
  run_->emit(context, OutputToolCallEvent{slot.call, checked.has_value()});
  if (!checked) {
    slot.failed_validation = true;
    ask_output_again(slot, std::move(checked.error()), RetryCause::validation_error);
    return;
  }
  try {
    for (const auto& validator : run_->output.spec().validators)
      checked->value = validator(context, std::move(checked->value));
  } catch (const ModelRetry& e) {
    ask_output_again(slot, std::string(e.what()), RetryCause::model_retry);
    return;
  }
  if (winner_) {
    answer_skipped(slot, k_output_not_final);
    return;
  }
  winner_ = std::move(*checked);
  winning_slot_ = &slot;
  answer_skipped(slot, k_output_processed);
}

bool ToolRound::function_asked_for_retry() const {
  return std::any_of(slots_.begin(), slots_.end(), [](const Slot& slot) {
    return slot.kind == Kind::function && slot.answer && slot.answer->outcome == ToolOutcome::retried;
  });
}

/// What the round as a whole makes of its outputs.
void ToolRound::settle() {
  for (auto& slot : slots_) {
    if (!slot.spent) continue;
    if (!winner_) std::rethrow_exception(slot.spent);
    answer_skipped(slot,
                   slot.failed_validation ? k_output_invalid_skipped : k_output_function_failed_skipped);
  }
  if (winner_ && function_asked_for_retry()) {
    if (winning_slot_) answer_skipped(*winning_slot_, k_output_set_aside);
    winner_.reset();
  } else if (winner_ && winning_slot_) {
    winning_call_id_ = winning_slot_->call.tool_call_id;
  }
  for (const auto& slot : slots_)
    if (slot.kind == Kind::output && slot.answer)
      run_->emit(RunContext(run_, call_info(slot)), OutputToolResultEvent{*slot.answer});
}

void ToolRound::answer(Slot& slot, Json content, ToolOutcome outcome, std::optional<RetryInfo> retry) {
  ToolReturnPart part;
  part.tool_name = slot.call.tool_name;
  part.content = std::move(content);
  part.tool_call_id = slot.call.tool_call_id;
  if (slot.tool) part.tool_kind = slot.tool->definition.tool_kind;
  part.outcome = outcome;
  part.retry = std::move(retry);
  slot.answer = std::move(part);
}

void ToolRound::answer_skipped(Slot& slot, std::string_view text) {
  answer(slot, std::string(text), ToolOutcome::success);
}

void ToolRound::ask_again(Slot& slot, Json content, RetryCause cause) {
  const int max_retries = slot.tool ? slot.tool->max_retries : run_->retries.tools;
  RetryInfo info = run_->note_tool_failure(slot.call.tool_name, max_retries, cause);
  answer(slot, std::move(content), ToolOutcome::retried, std::move(info));
}

/// An output whose budget is spent fails the run only when no other output of the round wins.
void ToolRound::ask_output_again(Slot& slot, Json content, RetryCause cause) {
  const std::string& name = slot.call.tool_name;
  const int attempt = run_->failures_of(name) + 1;
  if (!output_failed_now_) {
    if (run_->output_failures >= run_->retries.output) {
      slot.spent =
          std::make_exception_ptr(UnexpectedModelBehavior(output_retries_spent_text(run_->retries.output)));
      return;
    }
    ++run_->output_failures;
    output_failed_now_ = true;
  }
  run_->failed_now.insert(name);
  RetryInfo info;
  info.cause = cause;
  info.attempt = attempt;
  info.max_retries = run_->retries.output;
  answer(slot, std::move(content), ToolOutcome::retried, std::move(info));
}

void ToolRound::answer_value(Slot& slot, ToolValue value) {
  run_->succeeded_now.insert(slot.call.tool_name);
  if (auto* denied = std::get_if<ToolDenied>(&value)) {
    answer(slot, std::move(denied->message), ToolOutcome::denied);
    return;
  }
  auto& returned = std::get<ToolReturn>(value);
  ++run_->usage->tool_calls;
  answer(slot, std::move(returned.return_value), ToolOutcome::success);
  slot.answer->metadata = std::move(returned.metadata);
  slot.extra = std::move(returned.content);
}

RunContext::Call ToolRound::call_info(const Slot& slot) const {
  RunContext::Call call;
  call.id = slot.call.tool_call_id;
  call.name = slot.call.tool_name;
  call.retry = run_->failures_of(slot.call.tool_name);
  call.max_retries = slot.kind == Kind::output ? run_->retries.output
                     : slot.tool               ? slot.tool->max_retries
                                               : run_->retries.tools;
  return call;
}

std::vector<RequestPart> ToolRound::parts() const {
  std::vector<RequestPart> parts;
  const bool outputs_first = run_->data->options.end_strategy == EndStrategy::early;
  auto add = [&](const Slot& slot) {
    if (slot.answer) parts.emplace_back(*slot.answer);
  };
  for (const auto& slot : slots_)
    if (!outputs_first || slot.kind == Kind::output) add(slot);
  for (const auto& slot : slots_)
    if (outputs_first && slot.kind != Kind::output) add(slot);
  for (const auto& slot : slots_) {
    if (!slot.answer || !slot.extra) continue;
    UserPromptPart extra;
    extra.content = *slot.extra;
    parts.emplace_back(std::move(extra));
  }
  return parts;
}

}  // namespace holt::detail
