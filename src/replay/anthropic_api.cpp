#include "replay/anthropic_request.hpp"

#include <algorithm>
#include <cctype>

#include <fmt/format.h>

namespace holt::replay {
namespace {

std::string stop_reason(const Json& reply) {
  auto finish = reply.value("finish", std::string());
  if (finish == "stop") return "end_turn";
  if (finish == "length") return "max_tokens";
  if (finish == "tool_call") return "tool_use";
  if (finish == "content_filter") return "refusal";
  if (!finish.empty()) return finish;
  return reply.value("tool_calls", Json::array()).empty() ? "end_turn" : "tool_use";
}

Json usage_of(const Json& reply) {
  Json usage{{"input_tokens", 10}, {"output_tokens", 5}};
  usage.update(reply.value("usage", Json::object()));
  return usage;
}

Json blocks_of(const Json& reply, std::size_t number) {
  Json blocks = Json::array();
  if (auto text = reply.value("text", std::string()); !text.empty()) {
    blocks.push_back({{"type", "text"}, {"text", text}});
  }
  std::size_t call_number = 0;
  for (const auto& call : reply.value("tool_calls", Json::array())) {
    ++call_number;
    auto id = call.value("id", fmt::format("toolu_replay_{}_{}", number, call_number));
    blocks.push_back({{"type", "tool_use"},
                      {"id", id},
                      {"name", call.at("name")},
                      {"input", call.value("arguments", Json::object())}});
  }
  return blocks;
}

Json message_of(const Json& reply, const Request& request, std::size_t number) {
  return {{"id", fmt::format("msg_replay_{}", number)},
          {"type", "message"},
          {"role", "assistant"},
          {"model", request.model},
          {"content", blocks_of(reply, number)},
          {"stop_reason", stop_reason(reply)},
          {"stop_sequence", nullptr},
          {"usage", usage_of(reply)}};
}

/// Writes the events of a stream and remembers where each ends.
class EventWriter {
 public:
  void add(const std::string& type, Json data) {
    Json whole{{"type", type}};
    whole.update(data);
    if (!body_.empty()) splits_.push_back(body_.size());
    body_ += fmt::format("event: {}\ndata: {}\n\n", type, dump_json(whole));
  }
  Reply take() {
    return {.headers = {{"content-type", "text/event-stream"}},
            .body = std::move(body_),
            .splits = std::move(splits_)};
  }

 private:
  std::string body_;
  std::vector<std::size_t> splits_;
};

/// Pieces of a few characters, never inside one.
std::vector<std::string> pieces(const std::string& text) {
  constexpr std::size_t k_piece = 12;
  std::vector<std::string> out;
  for (char c : text) {
    bool inside_character = (static_cast<unsigned char>(c) & 0xc0) == 0x80;
    if (out.empty() || (out.back().size() >= k_piece && !inside_character)) out.emplace_back();
    out.back() += c;
  }
  return out;
}

void add_block(EventWriter& events, const Json& block, std::size_t index) {
  bool is_text = block.at("type") == "text";
  Json start = block;
  std::string rest;
  if (is_text) {
    rest = block.at("text").get<std::string>();
    start["text"] = "";
  } else {
    rest = dump_json(block.at("input"));
    start["input"] = Json::object();
  }
  events.add("content_block_start", {{"index", index}, {"content_block", start}});
  for (const auto& piece : pieces(rest)) {
    Json delta = is_text ? Json{{"type", "text_delta"}, {"text", piece}}
                         : Json{{"type", "input_json_delta"}, {"partial_json", piece}};
    events.add("content_block_delta", {{"index", index}, {"delta", delta}});
  }
  events.add("content_block_stop", {{"index", index}});
}

Reply stream_of(const Json& message) {
  EventWriter events;
  Json start = message;
  start["content"] = Json::array();
  start["stop_reason"] = nullptr;
  start["usage"]["output_tokens"] = 1;
  events.add("message_start", {{"message", start}});
  events.add("ping", Json::object());
  std::size_t index = 0;
  for (const auto& block : message.at("content")) add_block(events, block, index++);
  events.add("message_delta",
             {{"delta", {{"stop_reason", message.at("stop_reason")}, {"stop_sequence", nullptr}}},
              {"usage", message.at("usage")}});
  events.add("message_stop", Json::object());
  return events.take();
}

std::string error_type(int status) {
  switch (status) {
    case 401:
      return "authentication_error";
    case 402:
      return "billing_error";
    case 403:
      return "permission_error";
    case 404:
      return "not_found_error";
    case 413:
      return "request_too_large";
    case 429:
      return "rate_limit_error";
    case 504:
      return "timeout_error";
    case 529:
      return "overloaded_error";
    default:
      return status >= 500 ? "api_error" : "invalid_request_error";
  }
}

class AnthropicApi : public Api {
 public:
  bool takes(const HttpCall& call) const override { return call.path == "/v1/messages"; }

  Request read(const HttpCall& call) const override {
    if (call.method != "POST") throw Misfit("the method must be POST");
    check_headers(call.headers);
    auto body = parse_json(call.body);
    if (!body) throw Misfit("the body is no JSON: " + body.error().text());
    auto request = read_anthropic_body(*body);
    request.path = call.path;
    return request;
  }

  Reply answer(const Json& reply, const Request& request, std::size_t number) const override {
    auto message = message_of(reply, request, number);
    if (request.stream) return stream_of(message);
    return {.headers = {{"content-type", "application/json"}}, .body = dump_json(message)};
  }

  std::string error_body(int status, const std::string& message) const override {
    return dump_json({{"type", "error"}, {"error", {{"type", error_type(status)}, {"message", message}}}});
  }

 private:
  static void check_headers(const std::map<std::string, std::string>& headers) {
    auto get = [&](const char* name) {
      auto it = headers.find(name);
      return it == headers.end() ? std::string() : it->second;
    };
    if (!get("content-type").starts_with("application/json")) {
      throw Misfit("the header content-type must be application/json");
    }
    if (get("anthropic-version").empty()) throw Misfit("the header anthropic-version is missing");
    constexpr std::string_view k_bearer = "Bearer ";
    auto bearer = get("authorization");
    bool has_key =
        !get("x-api-key").empty() || (bearer.starts_with(k_bearer) && bearer.size() > k_bearer.size());
    if (!has_key) throw Misfit("no key: neither authorization nor x-api-key");
  }
};

}  // namespace

std::unique_ptr<Api> make_anthropic_api() {
  return std::make_unique<AnthropicApi>();
}

std::vector<std::unique_ptr<Api>> all_apis() {
  std::vector<std::unique_ptr<Api>> apis;
  apis.push_back(make_anthropic_api());
  return apis;
}

}  // namespace holt::replay
