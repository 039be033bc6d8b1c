#include "agent/response_node.hpp"

#include "agent/model_request.hpp"
#include "agent/tool_round.hpp"
#include "agent/wording.hpp"
#include "holt/base/error.hpp"

#include <algorithm>

namespace holt::detail {
namespace {

bool says_nothing(const ResponsePart& part) {
  if (const auto* text = std::get_if<TextPart>(&part)) return text->content.empty();
  return std::holds_alternative<ThinkingPart>(part);
}

bool has_nothing_usable(const ModelResponse& response) {
  return std::all_of(response.parts.begin(), response.parts.end(), says_nothing);
}

/// The text that counts: what stands behind the last call that the provider ran itself, if anything does.
std::string output_text(const ModelResponse& response, bool has_calls) {
  std::string text;
  std::string before_provider_call;
  std::string compaction;
  for (const auto& part : response.parts) {
    if (const auto* piece = std::get_if<TextPart>(&part)) {
      text += piece->content;
    } else if (std::holds_alternative<BuiltinToolCallPart>(part)) {
      if (!text.empty()) before_provider_call = std::exchange(text, {});
    } else if (const auto* summary = std::get_if<CompactionPart>(&part)) {
      compaction += summary->content.value_or("");
    }
  }
  if (text.empty() && !has_calls) text = before_provider_call;
  return text.empty() ? compaction : text;
}

std::optional<std::int64_t> max_tokens(const ModelSettings& settings) {
  auto found = settings.find("max_tokens");
  return found == settings.end() ? std::nullopt : json_integer<std::int64_t>(*found);
}

[[noreturn]] void throw_content_filter(const ModelResponse& response) {
  constexpr std::pair<const char*, std::string_view> k_labels[] = {
      {"finish_reason", "Finish reason"}, {"block_reason", "Block reason"}, {"refusal", "Refusal"}};
  std::string text = content_filter_text("Finish reason", "content_filter");
  const Json& details = response.provider_details;
  for (const auto& [key, label] : k_labels) {
    if (!details.is_object() || !details.contains(key) || !details[key].is_string()) continue;
    text = content_filter_text(label, details[key].get<std::string>());
  }
  throw ContentFilterError(text, dump_json(message_to_json_value(ModelMessage(response))));
}

void ask_again(const RunPtr& run, Json content, RetryCause cause) {
  RetryFeedbackPart part;
  part.content = std::move(content);
  part.retry = run->note_output_failure(cause);
  std::vector<RequestPart> parts;
  parts.emplace_back(std::move(part));
  run->next = make_request(run, std::move(parts));
}

void ask_for_output(const RunPtr& run) {
  const AnswerWays ways{.text = run->output.allows_text(),
                        .output_tool = !run->output.tools().empty(),
                        .tool = !run->tools.empty()};
  ask_again(run, no_output_text(ways), RetryCause::no_output);
}

std::optional<RawOutput> take_text(const RunPtr& run, const std::string& text) {
  OutputPlan::Checked checked = RawOutput{text, std::nullopt};
  if (run->output.takes_json_text()) checked = run->output.check_text(text);
  if (!checked) {
    ask_again(run, std::move(checked.error()), RetryCause::validation_error);
    return std::nullopt;
  }
  try {
    const RunContext context = context_of(run);
    for (const auto& validator : run->output.spec().validators)
      checked->value = validator(context, std::move(checked->value));
  } catch (const ModelRetry& e) {
    ask_again(run, std::string(e.what()), RetryCause::model_retry);
    return std::nullopt;
  }
  return std::move(*checked);
}

/// A call at the end of a response that was cut ends where the cut was.
ToolRound::Cut cut_of(const ModelResponse& response) {
  const bool cut = response.finish_reason == FinishReason::length && !response.parts.empty() &&
                   std::holds_alternative<ToolCallPart>(response.parts.back());
  return cut ? ToolRound::Cut::at_token_limit : ToolRound::Cut::none;
}

bool ends_in_broken_call(const ModelResponse& response) {
  if (cut_of(response) == ToolRound::Cut::none) return false;
  const auto& call = std::get<ToolCallPart>(response.parts.back());
  return call.args.is_string() && !parse_json(call.args.get_ref<const std::string&>());
}

Task<std::optional<RawOutput>> run_calls(RunPtr run, const ModelResponse& response) {
  ToolRound round(run, response.tool_calls(), output_text(response, true), cut_of(response));
  std::optional<RawOutput> output;
  std::exception_ptr failure;
  try {
    auto pending = round.process();
    output = co_await std::move(pending);
  } catch (...) {
    failure = std::current_exception();
  }
  ModelRequest answers = make_request(run, round.parts());
  if (failure) {
    answers.timestamp = Timestamp::now();
    answers.state = RequestState::interrupted;
    run->messages.emplace_back(std::move(answers));
    std::rethrow_exception(failure);
  }
  if (!output) {
    run->next = std::move(answers);
    co_return std::nullopt;
  }
  answers.timestamp = Timestamp::now();
  run->output_tool_call_id = round.winning_call_id();
  run->messages.emplace_back(std::move(answers));
  co_return output;
}

/// An unusable response that was cut in its last call is the cut's fault.
[[noreturn]] void rethrow_as_cut(const RunPtr& run, const ModelResponse& response,
                                 std::exception_ptr failure) {
  try {
    std::rethrow_exception(failure);
  } catch (const UnexpectedModelBehavior&) {
    if (ends_in_broken_call(response))
      throw IncompleteToolCall(token_limit_in_call_text(max_tokens(run->settings)));
    throw;
  }
}

}  // namespace

Task<std::optional<RawOutput>> handle_response(RunPtr run) {
  const ModelResponse response = std::get<ModelResponse>(run->messages.back());
  if (has_nothing_usable(response)) {
    if (response.finish_reason == FinishReason::length)
      throw UnexpectedModelBehavior(token_limit_no_answer_text(max_tokens(run->settings)));
    if (response.finish_reason == FinishReason::content_filter) throw_content_filter(response);
    if (run->output.allows_null()) co_return RawOutput{};
    ask_for_output(run);
    co_return std::nullopt;
  }
  if (!response.tool_calls().empty()) {
    std::exception_ptr failure;
    std::optional<RawOutput> output;
    try {
      auto pending = run_calls(run, response);
      output = co_await std::move(pending);
    } catch (...) {
      failure = std::current_exception();
    }
    if (failure) rethrow_as_cut(run, response, failure);
    co_return output;
  }
  const std::string text = output_text(response, false);
  if (!text.empty() && run->output.allows_text()) co_return take_text(run, text);
  ask_for_output(run);
  co_return std::nullopt;
}

}  // namespace holt::detail
