#include "models/anthropic_reply.hpp"

#include "holt/base/retry_after.hpp"
#include "holt/models/errors.hpp"
#include "models/model_ids.hpp"

#include <algorithm>
#include <array>
#include <cctype>

#include <fmt/format.h>

namespace holt::anthropic {
namespace {

constexpr const char* k_provider = "anthropic";
// More than any request can count, and far from overflowing when summed.
constexpr std::int64_t k_most_tokens = std::int64_t{1} << 53;

[[noreturn]] void throw_other_shape(std::string_view what, const Json& reply) {
  throw UnexpectedModelBehavior(fmt::format("The Anthropic reply has another shape: {}", what),
                                printable(dump_json(reply), 2000));
}

const Json& field(const Json& object, const char* name) {
  static const Json none = nullptr;
  if (!object.is_object()) return none;
  auto it = object.find(name);
  return it == object.end() ? none : *it;
}

std::optional<std::string> text_field(const Json& object, const char* name) {
  const auto& value = field(object, name);
  if (!value.is_string()) return std::nullopt;
  return value.get<std::string>();
}

std::string need_text(const Json& object, const char* name) {
  auto value = text_field(object, name);
  if (!value) throw_other_shape(fmt::format("`{}` is no text", name), object);
  return *value;
}

std::optional<std::int64_t> count(const Json& value) {
  if (value.is_number_unsigned()) {
    return static_cast<std::int64_t>(
        std::min(value.get<std::uint64_t>(), static_cast<std::uint64_t>(k_most_tokens)));
  }
  if (value.is_number_integer()) return std::clamp<std::int64_t>(value.get<std::int64_t>(), 0, k_most_tokens);
  return std::nullopt;
}

RequestUsage read_usage(const Json& usage) {
  RequestUsage out;
  if (!usage.is_object()) {
    out.unmeasured_requests = 1;
    return out;
  }
  auto number = [&](const char* name) { return count(field(usage, name)).value_or(0); };
  out.cache_write_tokens = number("cache_creation_input_tokens");
  out.cache_read_tokens = number("cache_read_input_tokens");
  out.input_tokens = number("input_tokens") + out.cache_write_tokens + out.cache_read_tokens;
  out.output_tokens = number("output_tokens");
  out.cache_write_1h_tokens =
      count(field(field(usage, "cache_creation"), "ephemeral_1h_input_tokens")).value_or(0);
  out.output_reasoning_tokens =
      count(field(field(usage, "output_tokens_details"), "thinking_tokens")).value_or(0);
  for (const auto& [name, value] : usage.items()) {
    if (auto number_of = count(value)) out.details[name] = *number_of;
  }
  return out;
}

std::optional<FinishReason> finish_reason(const std::string& raw) {
  if (raw == "end_turn" || raw == "stop_sequence" || raw == "compaction") return FinishReason::stop;
  if (raw == "max_tokens" || raw == "model_context_window_exceeded") return FinishReason::length;
  if (raw == "tool_use") return FinishReason::tool_call;
  if (raw == "refusal") return FinishReason::content_filter;
  return std::nullopt;
}

/// Stop reason and what belongs to it; `source` is the message or the delta that holds it.
void set_stop_reason(ModelResponse& response, const Json& source) {
  auto raw = text_field(source, "stop_reason");
  if (!raw) return;
  if (!response.provider_details.is_object()) response.provider_details = Json::object();
  response.provider_details["finish_reason"] = *raw;
  response.finish_reason = finish_reason(*raw);
  if (*raw == "pause_turn") response.state = ResponseState::suspended;
  const auto& details = field(source, "stop_details");
  if (auto text = text_field(details, "explanation")) response.provider_details["refusal"] = *text;
  if (auto category = text_field(details, "category")) {
    response.provider_details["refusal_category"] = *category;
  }
}

ThinkingPart thinking_part(const Json& block) {
  return ThinkingPart{.content = need_text(block, "thinking"),
                      .signature = text_field(block, "signature"),
                      .provider_name = k_provider};
}

ThinkingPart redacted_part(const Json& block) {
  return ThinkingPart{.content = "",
                      .id = "redacted_thinking",
                      .signature = need_text(block, "data"),
                      .provider_name = k_provider};
}

ResponsePart read_block(const Json& block) {
  auto type = need_text(block, "type");
  if (type == "text") return TextPart{.content = need_text(block, "text")};
  if (type == "thinking") return thinking_part(block);
  if (type == "redacted_thinking") return redacted_part(block);
  if (type == "tool_use") {
    const auto& input = field(block, "input");
    if (!input.is_object()) throw_other_shape("`input` of a tool call is no object", block);
    return ToolCallPart{
        .tool_name = need_text(block, "name"), .args = input, .tool_call_id = need_text(block, "id")};
  }
  throw_other_shape(fmt::format("unknown block type '{}'", printable(type, 100)), block);
}

std::string lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return std::tolower(c); });
  return text;
}

ModelErrorCategory category_of(const std::optional<std::string>& type, const std::string& text, int status) {
  using enum ModelErrorCategory;
  if (type == "rate_limit_error") return rate_limit;
  if (type == "billing_error") return quota;
  if (type == "overloaded_error") return overloaded;
  if (type == "invalid_request_error") {
    auto words = lower(text);
    if (words.find("prompt is too long") != std::string::npos) return context_window;
    if (words.find("credit balance is too low") != std::string::npos) return quota;
  }
  return category_of_status(status, text);
}

int status_of_error_type(const std::string& type) {
  constexpr std::array<std::pair<std::string_view, int>, 10> k_status{{
      {"invalid_request_error", 400},
      {"authentication_error", 401},
      {"billing_error", 402},
      {"permission_error", 403},
      {"not_found_error", 404},
      {"request_too_large", 413},
      {"rate_limit_error", 429},
      {"api_error", 500},
      {"timeout_error", 504},
      {"overloaded_error", 529},
  }};
  for (auto [known, status] : k_status) {
    if (type == known) return status;
  }
  return 500;
}

}  // namespace

ModelResponse read_reply(const Json& reply, const std::string& provider_url) {
  const auto& content = field(reply, "content");
  if (!content.is_array()) throw_other_shape("no list `content`", reply);
  ModelResponse response;
  for (const auto& block : content) response.parts.push_back(read_block(block));
  response.usage = read_usage(field(reply, "usage"));
  response.model_name = text_field(reply, "model");
  response.provider_name = k_provider;
  response.provider_url = provider_url;
  response.provider_response_id = text_field(reply, "id");
  set_stop_reason(response, reply);
  return response;
}

void throw_refusal(const RefusedReply& refused, const std::string& model_name, WallTime now) {
  ModelErrorInfo info{.model_name = model_name, .body = refusal_body(refused.body)};
  const auto& error = field(info.body, "error");
  info.provider_error_type = text_field(error, "type");
  info.retry_after = retry_after_seconds(refused.head.headers, now);
  auto text = text_field(error, "message").value_or(refused.body);
  auto category = category_of(info.provider_error_type, text, refused.head.status);
  std::optional<std::string> suggested;
  if (refused.head.status == 404) suggested = near_model_id("anthropic:" + model_name);
  throw_http_error(category, std::move(info), refused.head.status, refused.head.headers, suggested);
}

StreamReader::StreamReader(StreamedResponse& stream, OutputRules rules, std::string model_name,
                           std::string provider_url)
    : stream_(stream),
      assembler_(stream, std::move(rules)),
      asked_model_(std::move(model_name)),
      provider_url_(std::move(provider_url)) {}

std::string StreamReader::model_name() const {
  return begun_ ? stream_.response.model_name.value_or(asked_model_) : asked_model_;
}

void StreamReader::take(const SseEvent& event) {
  constexpr std::array<std::string_view, 7> k_known{"message_start",
                                                    "content_block_start",
                                                    "content_block_delta",
                                                    "content_block_stop",
                                                    "message_delta",
                                                    "message_stop",
                                                    "error"};
  if (!event.event.empty() && std::find(k_known.begin(), k_known.end(), event.event) == k_known.end()) return;
  auto data = decode_event(event.data, model_name());
  auto type = text_field(data, "type").value_or(event.event);
  if (type == "error") throw_error_event(data);
  if (type == "message_start") start_message(field(data, "message"));
  if (type == "content_block_start") start_block(data);
  if (type == "content_block_delta") change_block(data);
  if (type == "content_block_stop") open_calls_.erase(dump_json(field(data, "index")));
  if (type == "message_delta") change_message(data);
  if (type == "message_stop") stopped_ = true;
}

void StreamReader::start_message(const Json& message) {
  if (!message.is_object()) throw_other_shape("`message` is no object", message);
  begun_ = true;
  auto& response = stream_.response;
  response.model_name = text_field(message, "model").value_or(asked_model_);
  response.provider_response_id = text_field(message, "id");
  response.provider_name = k_provider;
  response.provider_url = provider_url_;
  add_usage(field(message, "usage"));
}

void StreamReader::start_block(const Json& event) {
  begun_ = true;
  auto key = dump_json(field(event, "index"));
  const auto& block = field(event, "content_block");
  auto type = need_text(block, "type");
  if (type == "text") {
    auto text = need_text(block, "text");
    if (!text.empty()) assembler_.text(key, text);
  } else if (type == "thinking" || type == "redacted_thinking") {
    auto part = type == "thinking" ? thinking_part(block) : redacted_part(block);
    assembler_.thinking(key, {.content = part.content,
                              .signature = part.signature,
                              .id = part.id,
                              .provider_name = part.provider_name});
  } else if (type == "tool_use") {
    const auto& input = field(block, "input");
    bool has_input = input.is_object() && !input.empty();
    open_calls_.insert(key);
    assembler_.tool_call(key, {.name = need_text(block, "name"),
                               .args = has_input ? input : Json(nullptr),
                               .tool_call_id = need_text(block, "id")});
  } else {
    throw_other_shape(fmt::format("unknown block type '{}'", printable(type, 100)), block);
  }
}

void StreamReader::change_block(const Json& event) {
  begun_ = true;
  auto key = dump_json(field(event, "index"));
  const auto& delta = field(event, "delta");
  auto type = need_text(delta, "type");
  if (type == "text_delta") assembler_.text(key, need_text(delta, "text"));
  if (type == "thinking_delta") assembler_.thinking(key, {.content = need_text(delta, "thinking")});
  if (type == "signature_delta") assembler_.thinking(key, {.signature = need_text(delta, "signature")});
  if (type == "input_json_delta") assembler_.tool_call(key, {.args = need_text(delta, "partial_json")});
}

void StreamReader::change_message(const Json& event) {
  begun_ = true;
  set_stop_reason(stream_.response, field(event, "delta"));
  add_usage(field(event, "usage"));
}

void StreamReader::add_usage(const Json& usage) {
  if (usage.is_object()) {
    if (!usage_.is_object()) usage_ = Json::object();
    for (const auto& [name, value] : usage.items()) {
      if (!value.is_null()) usage_[name] = value;
    }
  }
  stream_.response.usage = read_usage(usage_);
}

void StreamReader::throw_error_event(const Json& event) {
  const auto& error = field(event, "error");
  ModelErrorInfo info{.model_name = model_name(), .body = event, .in_stream = true};
  info.provider_error_type = text_field(error, "type");
  int status = status_of_error_type(info.provider_error_type.value_or(""));
  auto category = category_of(info.provider_error_type, text_field(error, "message").value_or(""), status);
  throw_http_error(category, std::move(info), status, {});
}

void StreamReader::end() {
  if (!begun_) throw UnexpectedModelBehavior("The stream ended with neither content nor tool calls");
  if (!stopped_ && !open_calls_.empty()) {
    throw ModelConnectionError("Connection error.", {.model_name = model_name()}, ConnectionPhase::read);
  }
  assembler_.finish();
  auto& state = stream_.response.state;
  if (state == ResponseState::incomplete) state = ResponseState::complete;
}

}  // namespace holt::anthropic
