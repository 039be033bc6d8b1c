#include "holt/messages/tool_result_text.hpp"
#include "holt/models/test_model.hpp"

#include <array>

namespace holt {
namespace {

/// Length of the white space (Unicode's, as \s takes it) at the front of `text`, 0 when there is none.
std::size_t space_length(std::string_view text) {
  constexpr std::string_view k_ascii = " \t\n\r\f\v\x1c\x1d\x1e\x1f";
  if (k_ascii.find(text.front()) != std::string_view::npos) return 1;
  constexpr std::array<std::string_view, 19> k_wide{
      "\xc2\x85",     "\xc2\xa0",     "\xe1\x9a\x80", "\xe2\x80\x80", "\xe2\x80\x81",
      "\xe2\x80\x82", "\xe2\x80\x83", "\xe2\x80\x84", "\xe2\x80\x85", "\xe2\x80\x86",
      "\xe2\x80\x87", "\xe2\x80\x88", "\xe2\x80\x89", "\xe2\x80\x8a", "\xe2\x80\xa8",
      "\xe2\x80\xa9", "\xe2\x80\xaf", "\xe2\x81\x9f", "\xe3\x80\x80"};
  for (auto wide : k_wide) {
    if (text.starts_with(wide)) return wide.size();
  }
  return 0;
}

std::size_t separator_length(std::string_view text) {
  constexpr std::string_view k_marks = "\",.:";
  if (k_marks.find(text.front()) != std::string_view::npos) return 1;
  return space_length(text);
}

std::string_view stripped(std::string_view text) {
  while (!text.empty()) {
    auto length = space_length(text);
    if (length == 0) break;
    text.remove_prefix(length);
  }
  for (std::size_t tail = 1; tail <= 3 && tail <= text.size();) {
    if (space_length(text.substr(text.size() - tail)) == tail) {
      text.remove_suffix(tail);
      tail = 1;
    } else {
      ++tail;
    }
  }
  return text;
}

std::int64_t tokens_of(const UserContentItem& item) {
  if (const auto* text = std::get_if<std::string>(&item)) return estimate_tokens(*text);
  if (const auto* text = std::get_if<TextContent>(&item)) return estimate_tokens(text->content);
  if (const auto* text = std::get_if<StructuredContent>(&item)) return estimate_tokens(text->content);
  if (const auto* binary = std::get_if<BinaryContent>(&item)) {
    return static_cast<std::int64_t>(binary->data.size());
  }
  return 0;
}

std::int64_t tokens_of(const UserContent& content) {
  if (const auto* text = std::get_if<std::string>(&content)) return estimate_tokens(*text);
  std::int64_t sum = 0;
  for (const auto& item : std::get<std::vector<UserContentItem>>(content)) sum += tokens_of(item);
  return sum;
}

std::int64_t tokens_of(const RequestPart& part) {
  if (const auto* system = std::get_if<SystemPromptPart>(&part)) return estimate_tokens(system->content);
  if (const auto* prompt = std::get_if<UserPromptPart>(&part)) return tokens_of(prompt->content);
  if (const auto* result = std::get_if<ToolReturnPart>(&part))
    return estimate_tokens(tool_return_text(*result));
  if (const auto* feedback = std::get_if<RetryFeedbackPart>(&part)) {
    return estimate_tokens(retry_feedback_text(*feedback).text);
  }
  return 0;
}

/// Arguments as JSON text; text that is no JSON counts as the one field that the reference puts it in.
std::string arguments_text(const Json& args) {
  if (args.is_null() || args == "") return "{}";
  if (!args.is_string()) return dump_json(args);
  const auto& text = args.get_ref<const std::string&>();
  if (parse_json(text)) return text;
  Json invalid = Json::object();
  invalid["INVALID_JSON"] = text;
  return dump_json(invalid);
}

std::int64_t tokens_of(const ToolCallPart& call) {
  return 1 + estimate_tokens(arguments_text(call.args));
}

std::int64_t tokens_of(const ResponsePart& part) {
  if (const auto* text = std::get_if<TextPart>(&part)) return estimate_tokens(text->content);
  if (const auto* thinking = std::get_if<ThinkingPart>(&part)) return estimate_tokens(thinking->content);
  if (const auto* call = std::get_if<ToolCallPart>(&part)) return tokens_of(*call);
  if (const auto* call = std::get_if<BuiltinToolCallPart>(&part)) return tokens_of(*call);
  if (const auto* result = std::get_if<BuiltinToolReturnPart>(&part)) {
    return estimate_tokens(dump_json(result->content));
  }
  if (const auto* file = std::get_if<FilePart>(&part)) {
    return static_cast<std::int64_t>(file->content.data.size());
  }
  return 0;
}

std::int64_t tokens_of(const ModelResponse& response) {
  std::int64_t sum = 0;
  for (const auto& part : response.parts) sum += tokens_of(part);
  return sum;
}

}  // namespace

std::int64_t estimate_tokens(std::string_view text) {
  if (text.empty()) return 0;
  text = stripped(text);
  std::int64_t pieces = 1;
  bool in_run = false;
  while (!text.empty()) {
    auto length = separator_length(text);
    if (length > 0 && !in_run) ++pieces;
    in_run = length > 0;
    text.remove_prefix(std::max<std::size_t>(length, 1));
  }
  return pieces;
}

RequestUsage estimate_usage(const MessageHistory& messages, const ModelResponse& response) {
  constexpr std::int64_t k_overhead = 50;
  RequestUsage usage;
  usage.input_tokens = k_overhead;
  usage.output_tokens = tokens_of(response);
  for (const auto& message : messages) {
    if (const auto* request = std::get_if<ModelRequest>(&message)) {
      for (const auto& part : request->parts) usage.input_tokens += tokens_of(part);
    } else {
      usage.output_tokens += tokens_of(std::get<ModelResponse>(message));
    }
  }
  return usage;
}

}  // namespace holt
