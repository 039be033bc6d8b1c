// The replay server, and the Anthropic provider against it.

#include "holt/base/error.hpp"
#include "holt/base/task.hpp"
#include "holt/models/anthropic.hpp"
#include "holt/models/errors.hpp"
#include "holt/replay/replay_server.hpp"
#include "replay/service.hpp"

#include <poll.h>
#include <string>
#include <thread>

#include <gtest/gtest.h>

namespace holt {
namespace {

using replay::HttpCall;
using replay::Service;

ToolDefinition shell() {
  return {
      .name = "shell", .description = "Run a command.", .parameters_json_schema = Json{{"type", "object"}}};
}

MessageHistory user(const std::string& text) {
  return {ModelRequest{.parts = {UserPromptPart{.content = text}}}};
}

ModelPtr model_at(const std::string& url) {
  AnthropicOptions options{.api_key = "any", .base_url = url};
  options.settings = Json{{"max_tokens", 1000}};
  options.clock.sleep = [](Duration) -> Task<void> { co_return; };
  return make_anthropic_model("claude-sonnet-4-5", std::move(options));
}

ModelResponse ask(const ModelPtr& model, const MessageHistory& messages) {
  return sync_wait(model->request(messages, Json::object(), {.function_tools = {shell()}}));
}

StreamedResponse stream(const ModelPtr& model, const MessageHistory& messages) {
  StreamedResponse out;
  sync_wait(model->request_stream(messages, Json::object(), {.function_tools = {shell()}}, out));
  return out;
}

void answer_calls(MessageHistory& messages, const ModelResponse& response, const std::string& text) {
  messages.push_back(response);
  ModelRequest results;
  for (const auto& call : response.tool_calls()) {
    results.parts.push_back(
        ToolReturnPart{.tool_name = call.tool_name, .content = text, .tool_call_id = call.tool_call_id});
  }
  messages.push_back(results);
}

const char* const k_two_steps =
    R"({"expect": {"path": "/v1/messages", "model": "claude-sonnet-4-5", "user": "primes", "tools": ["shell"]}, "reply": {"text": "Let me see.", "tool_calls": [{"name": "shell", "arguments": {"command": "echo 2 3 5"}}]}}

{"expect": {"results": ["2 3"]}, "reply": {"text": "Done.", "usage": {"input_tokens": 77}}}
)";

TEST(ReplayServer, PlaysAConversationWholeAndStreamed) {
  for (bool streamed : {false, true}) {
    ReplayServer server(ReplayScript::parse(k_two_steps));
    auto model = model_at(server.url());
    auto messages = user("Print primes, please");
    auto first = streamed ? stream(model, messages).response : ask(model, messages);
    EXPECT_EQ(first.text(), "Let me see.");
    ASSERT_EQ(first.tool_calls().size(), 1U);
    EXPECT_EQ(first.tool_calls()[0].tool_name, "shell");
    EXPECT_EQ(first.finish_reason, FinishReason::tool_call);
    answer_calls(messages, first, "2 3 5");
    auto second = streamed ? stream(model, messages).response : ask(model, messages);
    EXPECT_EQ(second.text(), "Done.");
    EXPECT_EQ(second.usage.input_tokens, 77);
    EXPECT_EQ(second.finish_reason, FinishReason::stop);
    auto report = server.stop();
    EXPECT_TRUE(report.ok());
  }
}

TEST(ReplayServer, KeepsConversationsApartByTheirFirstUserMessage) {
  ReplayServer server(ReplayScript::parse(R"({"expect": {"user": "one"}, "reply": {"text": "1a"}}
{"expect": {"user": "two"}, "reply": {"text": "2a"}}
{"expect": {"user": "again"}, "reply": {"text": "1b"}}
{"expect": {"user": "more"}, "reply": {"text": "2b"}})"));
  auto model = model_at(server.url());
  auto one = user("one");
  auto two = user("two");
  EXPECT_EQ(ask(model, two).text(), "2a");
  auto first = ask(model, one);
  EXPECT_EQ(first.text(), "1a");
  two.push_back(ModelResponse{.parts = {TextPart{.content = "2a"}}});
  two.push_back(user("more").front());
  EXPECT_EQ(ask(model, two).text(), "2b");
  one.push_back(first);
  one.push_back(user("again").front());
  EXPECT_EQ(ask(model, one).text(), "1b");
  EXPECT_TRUE(server.stop().ok());
}

TEST(ReplayServer, FailsLoudlyWhenARequestDoesNotFit) {
  std::vector<std::string> told;
  ReplayServer server(ReplayScript::parse(k_two_steps),
                      {.on_misfit = [&](const std::string& sentence) { told.push_back(sentence); }});
  auto model = model_at(server.url());
  try {
    ask(model, user("something else"));
    ADD_FAILURE() << "a misfit was answered";
  } catch (const ModelHTTPError& error) {
    EXPECT_EQ(error.status_code(), 400);
    EXPECT_EQ(error.info().provider_error_type, "invalid_request_error");
    EXPECT_NE(dump_json(error.info().body).find("line 1: the last user message should hold 'primes'"),
              std::string::npos);
  }
  auto report = server.stop();
  EXPECT_EQ(report.misfits, told);
  EXPECT_EQ(report.misfits.size(), 1U);
  EXPECT_EQ(report.unused, (std::vector<std::size_t>{1, 3}));
  EXPECT_FALSE(report.ok());
}

TEST(ReplayServer, ChecksWhatTheToolsGaveBack) {
  ReplayServer server(ReplayScript::parse(k_two_steps));
  auto model = model_at(server.url());
  auto messages = user("primes");
  auto first = ask(model, messages);
  answer_calls(messages, first, "4 6 8");
  EXPECT_THROW(ask(model, messages), ModelRequestRejectedError);
  EXPECT_FALSE(server.stop().ok());
}

TEST(ReplayServer, GivesRawRepliesErrorsSplitsAndBrokenConnections) {
  ReplayServer server(ReplayScript::parse(R"({"reply": {"status": 529}}
{"reply": {"status": 200, "headers": {"content-type": "text/html"}, "body": "<html>"}}
{"reply": {"body": {"id": "m", "content": [{"type": "text", "text": "raw"}]}, "delay_ms": 5}}
{"reply": {"text": "a longer text that is streamed in many pieces", "chunks": [1, 2, 3, 50, 51]}}
{"reply": {"text": "broken", "cut": true}}
{"reply": {"text": "broken", "cut": 10}}
{"reply": {"status": 404, "text": "no such model"}})"));
  auto model = model_at(server.url());
  EXPECT_THROW(ask(model, user("a")), ModelAPIError);  // the retry of the first gets the second
  EXPECT_EQ(ask(model, user("a")).text(), "raw");
  EXPECT_EQ(stream(model, user("a")).response.text(), "a longer text that is streamed in many pieces");
  EXPECT_THROW(stream(model, user("a")), ModelConnectionError);
  EXPECT_THROW(stream(model, user("a")), ModelConnectionError);
  EXPECT_THROW(ask(model, user("a")), ModelNotFoundError);
  EXPECT_TRUE(server.stop().ok());
}

TEST(ReplayServer, TellsWhenEveryEntryHasBeenUsed) {
  CancellationToken done;
  ReplayServer server(ReplayScript::parse(R"({"reply": {"text": "a"}}
{"reply": {"text": "b"}})"),
                      {.on_all_used = [done] { done.cancel(); }});
  auto model = model_at(server.url());
  EXPECT_EQ(ask(model, user("x")).text(), "a");
  EXPECT_FALSE(done.cancelled());
  EXPECT_EQ(stream(model, user("x")).response.text(), "b");
  pollfd wait{.fd = done.fd(), .events = POLLIN, .revents = 0};
  EXPECT_EQ(::poll(&wait, 1, 10'000), 1);
}

TEST(ReplayServer, StopsWithOpenConnectionsAndRefusesOtherAddresses) {
  ReplayServer server(ReplayScript::parse(R"({"reply": {"text": "hi", "delay_ms": 600000}})"));
  std::thread client([&] {
    auto model = model_at(server.url());
    EXPECT_THROW(sync_wait(model->request(user("a"), Json{{"max_retries", 0}}, {})), Error);
  });
  server.stop();
  client.join();
  EXPECT_THROW(ReplayServer({}, {.host = "0.0.0.0"}), Error);
  EXPECT_THROW(ReplayServer({}, {.host = "example.com"}), Error);
}

// The rules, without sockets.

HttpCall call(const Json& body) {
  return {.method = "POST",
          .path = "/v1/messages",
          .headers = {{"content-type", "application/json"}, {"anthropic-version", "1"}, {"x-api-key", "k"}},
          .body = dump_json(body)};
}

Json body_with(const char* messages) {
  return {{"model", "m"}, {"max_tokens", 1}, {"messages", *parse_json(messages)}};
}

std::string refusal(const HttpCall& request) {
  Service service(ReplayScript::parse(R"({"reply": {"text": "ok"}})"), {});
  auto reply = service.handle(request).reply;
  if (reply.status == 200) return "";
  EXPECT_EQ(reply.status, 400);
  return parse_json(reply.body)->at("error").at("message").get<std::string>();
}

TEST(ReplayRules, RefuseWhatTheApiRefuses) {
  EXPECT_EQ(refusal(call(body_with(R"([{"role":"user","content":"hi"}])"))), "");
  const std::vector<std::pair<const char*, const char*>> cases{
      {R"([])", "`messages`"},
      {R"([{"role":"assistant","content":"hi"}])", "first message"},
      {R"([{"role":"robot","content":"hi"}])", "unknown role"},
      {R"([{"role":"user","content":[]}])", "no content"},
      {R"([{"role":"user","content":""}])", "must be a text"},
      {R"([{"role":"user","content":"a"},{"role":"assistant","content":"b"},{"role":"assistant","content":"c"}])",
       "follow each other"},
      {R"([{"role":"user","content":"a"},{"role":"assistant","content":[{"type":"tool_use","id":"1","name":"f","input":{}}]}])",
       "no result"},
      {R"([{"role":"user","content":"a"},{"role":"assistant","content":[{"type":"tool_use","id":"1","name":"f","input":{}}]},{"role":"user","content":"b"}])",
       "no result"},
      {R"([{"role":"user","content":[{"type":"tool_result","tool_use_id":"1","content":"x"}]}])",
       "no open call"},
      {R"([{"role":"user","content":"a"},{"role":"assistant","content":[{"type":"tool_use","id":"1","name":"f","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"1"},{"type":"tool_result","tool_use_id":"1"}]}])",
       "no open call"},
      {R"([{"role":"user","content":"a"},{"role":"assistant","content":[{"type":"tool_use","id":"1","name":"f","input":{}}]},{"role":"user","content":[{"type":"text","text":"x"},{"type":"tool_result","tool_use_id":"1"}]}])",
       "before other content"},
      {R"([{"role":"user","content":"a"},{"role":"assistant","content":[{"type":"tool_use","id":"1","name":"f","input":"x"}]}])",
       "no object"},
  };
  for (const auto& [messages, word] : cases) {
    EXPECT_NE(refusal(call(body_with(messages))).find(word), std::string::npos)
        << messages << ": " << refusal(call(body_with(messages)));
  }
}

TEST(ReplayRules, WantTheHeadersAndTheBasics) {
  auto good = call(body_with(R"([{"role":"user","content":"hi"}])"));
  for (const char* header : {"content-type", "anthropic-version", "x-api-key"}) {
    auto without = good;
    without.headers.erase(header);
    EXPECT_NE(refusal(without), "") << header;
  }
  auto bearer = good;
  bearer.headers.erase("x-api-key");
  bearer.headers["authorization"] = "Bearer k";
  EXPECT_EQ(refusal(bearer), "");
  auto elsewhere = good;
  elsewhere.path = "/v1/complete";
  EXPECT_NE(refusal(elsewhere).find("no API"), std::string::npos);
  auto get = good;
  get.method = "GET";
  EXPECT_NE(refusal(get), "");
  auto cut = good;
  cut.body.pop_back();
  EXPECT_NE(refusal(cut).find("no JSON"), std::string::npos);
  for (const char* key : {"model", "max_tokens", "messages"}) {
    auto body = *parse_json(good.body);
    body.erase(key);
    EXPECT_NE(refusal(call(body)), "") << key;
  }
  auto body = *parse_json(good.body);
  body["tool_choice"] = {{"type", "auto"}};
  EXPECT_NE(refusal(call(body)).find("without tools"), std::string::npos);
}

TEST(ReplayScript, NamesTheLineOfAMistake) {
  for (const char* bad :
       {"{", "[]", R"({"expect": {}})", R"({"reply": {}, "x": 1})", R"({"reply": {"txt": "a"}})",
        R"({"expect": {"stream": "yes"}, "reply": {}})", R"({"reply": {"tool_calls": [{"arguments": {}}]}})",
        R"({"reply": {"chunks": [3, 1]}})", R"({"reply": {"status": 99}})",
        R"({"reply": {"delay_ms": -1}})"}) {
    try {
      ReplayScript::parse(std::string("\n") + R"({"reply": {}})" + "\n" + bad + "\n");
      ADD_FAILURE() << bad << " was taken";
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find("line 3"), std::string::npos) << error.what();
    }
  }
}

}  // namespace
}  // namespace holt
