// The recorded exchanges with Anthropic's API: what is sent, what becomes of the reply, which error is
// thrown. Each case goes through the real provider and a server that answers with the recorded bytes.

#include "holt/base/task.hpp"
#include "holt/messages/repair.hpp"
#include "holt/models/anthropic.hpp"
#include "models/canned_server.hpp"
#include "models/model_json.hpp"
#include "support/fixtures.hpp"

#include <algorithm>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

namespace holt::test {
namespace {

/// Cases that must pass wherever they come from. All others that stand in the source tree must pass too,
/// unless they are listed below; those of another folder (HOLT_FIXTURES) are only counted.
bool is_required(const std::string& name) {
  static const std::set<std::string> single{"text",           "system_prompt", "instructions", "multi_turn",
                                            "settings_merge", "stream_text",   "stream_tool",  "stream_cut"};
  if (single.contains(name)) return true;
  if (name.starts_with("error_")) return true;
  if (!name.starts_with("tool_")) return false;
  auto later = [&](const char* word) { return name.find(word) != std::string::npos; };
  return !later("_history") && !later("_image") && !later("_choice") && !later("_strict");
}

/// Cases that fail today, with the reason.
const std::map<std::string, std::string>& known_later() {
  static const std::map<std::string, std::string> cases{
      {"pause_turn", "joining a paused answer with the next is the agent's part"},
  };
  return cases;
}

bool is_shipped(const std::string& name) {
  auto folder = std::filesystem::path(HOLT_SOURCE_DIR) / "tests/fixtures/wire/anthropic";
  return std::filesystem::exists(folder / (name + ".json"));
}

/// The recorded events that a model makes; others are the agent's.
Json model_events(const Json& events) {
  Json out = Json::array();
  for (const auto& event : events) {
    if (event.at("event_kind") != "model_settings_delta") out.push_back(event);
  }
  return out;
}

std::string without_host(std::string text, const std::string& url) {
  for (auto at = text.find(url); at != std::string::npos; at = text.find(url)) {
    text.replace(at, url.size(), "http://model.invalid");
  }
  return text;
}

CannedReply canned(const Json& reply) {
  CannedReply out{.status = reply.at("status")};
  for (const auto& [name, value] : reply.at("headers").items()) out.headers.emplace_back(name, value);
  out.body = reply.at("body");
  bool is_stream =
      reply["headers"].value("content-type", std::string()).find("event-stream") != std::string::npos;
  if (is_stream) {
    out.end = CannedReply::End::chunked;
    out.piece = 7;
  }
  if (reply.value("connection_dropped", false)) out.end = CannedReply::End::cut;
  if (reply.contains("no_answer_for_s")) out.end = CannedReply::End::nothing;
  return out;
}

std::vector<CannedReply> canned_replies(const Json& exchange) {
  std::vector<CannedReply> replies;
  if (!exchange.contains("reply")) return replies;
  if (exchange.contains("earlier_replies")) {
    for (const auto& reply : exchange["earlier_replies"]) replies.push_back(canned(reply));
  }
  auto attempts = exchange.value("attempts", std::size_t{1});
  while (replies.size() < attempts) replies.push_back(canned(exchange["reply"]));
  return replies;
}

/// What came of one exchange, ours in the form of the recorded.
struct Outcome {
  std::vector<SeenRequest> requests;
  std::optional<ModelResponse> response;
  Json events = Json::array();
  std::set<std::string> error_names;
  std::string error_text;
  std::exception_ptr error;
};

Outcome run_exchange(const Json& test_case, const Json& exchange) {
  CannedServer server(canned_replies(exchange));
  AnthropicOptions options{.api_key = "sk-ant-fake-key", .base_url = server.url()};
  auto own_settings = test_case.at("run").value("model_level_settings", Json());
  if (own_settings.is_object()) options.settings = own_settings;
  options.clock.sleep = [](Duration) -> Task<void> { co_return; };
  auto model = make_anthropic_model(test_case.at("model"), options);
  auto messages = messages_from_json_value(exchange.at("prepared_messages"));
  auto settings = exchange.at("model_settings").is_object() ? exchange["model_settings"] : Json::object();
  auto parameters = parameters_from_json(exchange.at("model_request_parameters"));
  Outcome outcome;
  StreamedResponse stream;
  stream.on_event = [&](const ModelStreamEvent& event) { outcome.events.push_back(event_to_json(event)); };
  try {
    if (test_case.at("streamed").get<bool>()) {
      sync_wait(model->request_stream(messages, settings, parameters, stream));
      outcome.response = stream.response;
    } else {
      outcome.response = sync_wait(model->request(messages, settings, parameters));
    }
  } catch (const std::exception& error) {
    outcome.error = std::current_exception();
    outcome.error_names = class_names(error);
    outcome.error_text = error.what();
    if (!stream.response.parts.empty()) outcome.response = stream.response;
  }
  outcome.requests = server.requests();
  if (outcome.response && outcome.response->provider_url) {
    outcome.response->provider_url = without_host(*outcome.response->provider_url, server.url());
  }
  return outcome;
}

/// A response message without what is the run's or the clock's.
Json bare(Json message) {
  for (const char* key : {"timestamp", "run_id", "conversation_id"}) message.erase(key);
  message["usage"].erase("cost");
  return message;
}

std::string difference(const char* what, const Json& ours, const Json& recorded) {
  if (json_equal(ours, recorded)) return {};
  return fmt::format("{}\n  ours:     {}\n  recorded: {}\n", what, dump_json(ours), dump_json(recorded));
}

std::string compare_request(const Json& exchange, const Outcome& outcome) {
  auto attempts = exchange.value("attempts", std::size_t{1});
  std::string out;
  if (outcome.requests.size() != attempts) {
    out += fmt::format("{} attempts, recorded {}\n", outcome.requests.size(), attempts);
  }
  if (outcome.requests.empty() || !exchange.contains("request")) return out;
  const auto& request = outcome.requests.front();
  const auto& recorded = exchange["request"];
  if (request.method != recorded.at("method").get<std::string>()) out += "method " + request.method + "\n";
  if (request.path != recorded.at("path").get<std::string>()) out += "path " + request.path + "\n";
  for (const auto& [name, value] : recorded.at("headers").items()) {
    bool ignored = name.starts_with("x-stainless") || name.starts_with("accept") || name == "user-agent" ||
                   name == "connection";
    if (ignored) continue;
    auto it = request.headers.find(name);
    if (it == request.headers.end() || it->second != value.get<std::string>()) out += "header " + name + "\n";
  }
  auto body = parse_json(request.body);
  out += body ? difference("body", *body, recorded.at("body")) : "the body is no JSON\n";
  for (const auto& later : outcome.requests) {
    if (later.body != request.body) out += "a later attempt sent another body\n";
  }
  return out;
}

std::string compare_error(const Json& raised, const Outcome& outcome) {
  auto expected = recorded_class_names(raised);
  if (outcome.error_names != expected) {
    return fmt::format("error classes [{}], recorded [{}]: {}\n", fmt::join(outcome.error_names, " "),
                       fmt::join(expected, " "), outcome.error_text);
  }
  std::string out;
  try {
    std::rethrow_exception(outcome.error);
  } catch (const ModelAPIError& error) {
    const auto& info = error.info();
    auto text = [](const std::optional<std::string>& value) { return value ? Json(*value) : Json(nullptr); };
    out += difference("model_name", info.model_name, raised.at("model_name"));
    out += difference("body", info.body, raised.at("body"));
    out += difference("retry_after", info.retry_after ? Json(*info.retry_after) : Json(nullptr),
                      raised.at("retry_after"));
    out +=
        difference("provider_error_type", text(info.provider_error_type), raised.at("provider_error_type"));
    out +=
        difference("provider_error_code", text(info.provider_error_code), raised.at("provider_error_code"));
    out += difference("in_stream", info.in_stream, raised.at("in_stream"));
    if (const auto* http = dynamic_cast<const ModelHTTPError*>(&error)) {
      out += difference("status_code", http->status_code(), raised.at("status_code"));
    } else {
      out += difference("message", outcome.error_text, raised.at("message"));
    }
    if (const auto* connection = dynamic_cast<const ModelConnectionError*>(&error)) {
      out += difference("phase", to_string(connection->phase()), raised.at("phase"));
    }
  } catch (const UserError&) {
    out += difference("message", outcome.error_text, raised.at("message"));
  } catch (const UnexpectedModelBehavior&) {
  }
  return out;
}

/// Whether the recorded error came out of this exchange, not out of what the agent made of it.
bool raises(const Json& test_case, std::size_t index) {
  const auto& raised = test_case.at("raised");
  const auto& exchange = test_case["exchanges"][index];
  if (raised.is_null() || index + 1 != test_case["exchanges"].size()) return false;
  return !exchange.contains("response_message") || exchange["response_message"]["state"] == "interrupted";
}

std::string compare_exchange(const Json& test_case, std::size_t index) {
  const auto& exchange = test_case["exchanges"][index];
  auto outcome = run_exchange(test_case, exchange);
  std::string out = compare_request(exchange, outcome);
  if (raises(test_case, index)) {
    out += compare_error(test_case["raised"], outcome);
  } else if (outcome.error) {
    out += "threw: " + outcome.error_text + "\n";
  }
  const auto& recorded = exchange.value("response_message", Json());
  bool has_parts = recorded.is_object() && !recorded["parts"].empty();
  if (has_parts && !outcome.response) {
    out += "no response\n";
  } else if (has_parts) {
    out += difference("response", bare(message_to_json_value(*outcome.response)), bare(recorded));
  }
  if (exchange.contains("events"))
    out += difference("events", outcome.events, model_events(exchange["events"]));
  return out;
}

TEST(AnthropicWire, SendsAndUnderstandsWhatWasRecorded) {
  Tally tally("wire/anthropic");
  std::size_t required = 0;
  for (const auto& path : fixture_files("wire/anthropic")) {
    auto test_case = read_fixture(path);
    auto name = path.stem().string();
    if (!test_case.at("exchanges").is_array() || test_case["exchanges"].empty()) {
      tally.later();  // refused before any request: the agent's part
      continue;
    }
    std::string problems;
    for (std::size_t i = 0; i < test_case["exchanges"].size(); ++i) {
      auto found = compare_exchange(test_case, i);
      if (!found.empty()) problems += fmt::format("exchange {}: {}", i, found);
    }
    required += is_required(name) ? 1 : 0;
    if (known_later().contains(name)) {
      EXPECT_FALSE(problems.empty() && is_shipped(name)) << name << " passes: take it off the list";
      tally.later();
      continue;
    }
    tally.count(problems.empty());
    bool must_pass = is_required(name) || is_shipped(name);
    EXPECT_TRUE(problems.empty() || !must_pass) << name << "\n" << problems;
  }
  std::cout << "wire/anthropic: " << required << " of them required now\n";
}

/// The history that a request was made from gives the recorded prepared messages.
TEST(AnthropicWire, PreparesHistoriesAsRecorded) {
  Tally tally("wire/anthropic, preparation");
  for (const auto& path : fixture_files("wire/anthropic")) {
    auto test_case = read_fixture(path);
    if (!test_case.at("exchanges").is_array()) continue;
    for (const auto& exchange : test_case["exchanges"]) {
      if (!exchange.contains("response_index") || path.stem() == "pause_turn") continue;
      Json before = Json::array();
      for (std::size_t i = 0; i < exchange["response_index"].get<std::size_t>(); ++i) {
        before.push_back(test_case.at("final_messages")[i]);
      }
      auto repaired = repair_history(messages_from_json_value(before), RepairLastResponse::repair).messages;
      auto model = make_anthropic_model(test_case.at("model"), {.api_key = "k"});
      auto prepared = messages_to_json_value(model->prepare(repaired, {}));
      bool same = json_equal(prepared, exchange.at("prepared_messages"));
      tally.count(same);
      EXPECT_TRUE(same) << path.stem() << "\n  ours:     " << dump_json(prepared)
                        << "\n  recorded: " << dump_json(exchange["prepared_messages"]);
    }
  }
}

}  // namespace
}  // namespace holt::test
