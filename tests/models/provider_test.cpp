// The Anthropic provider against servers that misbehave.

#include "holt/base/error.hpp"
#include "holt/base/task.hpp"
#include "holt/models/anthropic.hpp"
#include "holt/models/errors.hpp"
#include "models/canned_server.hpp"

#include <chrono>
#include <string>
#include <thread>

#include <boost/asio.hpp>
#include <gtest/gtest.h>

namespace holt::test {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

const std::string k_start =
    "event: message_start\ndata: "
    "{\"type\":\"message_start\",\"message\":{\"id\":\"m\",\"model\":\"claude-x\","
    "\"content\":[],\"usage\":{\"input_tokens\":1,\"output_tokens\":1}}}\n\n";

std::string block_start(const std::string& block) {
  return "data: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":" + block + "}\n\n";
}

std::string delta(const std::string& what) {
  return "data: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":" + what + "}\n\n";
}

const std::string k_text =
    block_start(R"({"type":"text","text":"Hel"})") + delta(R"({"type":"text_delta","text":"lo"})");
const std::string k_half_call = block_start(R"({"type":"tool_use","id":"c","name":"f","input":{}})") +
                                delta(R"({"type":"input_json_delta","partial_json":"{\"a\":"})");
const std::string k_stop =
    "data: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"},"
    "\"usage\":{\"output_tokens\":2}}\n\ndata: {\"type\":\"message_stop\"}\n\n";

CannedReply event_stream(const std::string& body, CannedReply::End end = CannedReply::End::chunked) {
  return {.headers = {{"content-type", "text/event-stream"}}, .body = body, .end = end};
}

CannedReply json(const std::string& body, int status = 200) {
  return {.status = status, .headers = {{"content-type", "application/json"}}, .body = body};
}

const std::string k_reply =
    R"({"id":"m","model":"claude-x","content":[{"type":"text","text":"Hello"}],"stop_reason":"end_turn","usage":{"input_tokens":1,"output_tokens":2}})";

struct Waits {
  std::vector<Duration> asked;
};

ModelPtr model_at(const std::string& url, Waits& waits, Json settings = Json::object()) {
  AnthropicOptions options{.api_key = "sk-secret", .base_url = url};
  settings["max_tokens"] = 1000;
  options.settings = std::move(settings);
  options.clock.sleep = [&waits](Duration duration) -> Task<void> {
    waits.asked.push_back(duration);
    co_return;
  };
  return make_anthropic_model("claude-sonnet-4-5", std::move(options));
}

MessageHistory hi() {
  return {ModelRequest{.parts = {UserPromptPart{.content = "Hi"}}}};
}

ModelResponse ask(const ModelPtr& model, const CancellationToken& cancel = {}) {
  return sync_wait(model->request(hi(), Json::object(), {}), cancel);
}

StreamedResponse stream(const ModelPtr& model, std::exception_ptr& error) {
  StreamedResponse out;
  try {
    sync_wait(model->request_stream(hi(), Json::object(), {}, out));
  } catch (...) {
    error = std::current_exception();
  }
  return out;
}

template <class Expected>
Expected caught(std::exception_ptr error) {
  if (!error) throw std::runtime_error("nothing was thrown");
  try {
    std::rethrow_exception(error);
  } catch (const Expected& expected) {
    return expected;
  }
}

TEST(Provider, KeepsThePartsOfABrokenStreamAndNeverRepeatsIt) {
  for (auto end : {CannedReply::End::cut, CannedReply::End::reset}) {
    for (const auto& body : {k_start, k_start + k_text, k_start + k_half_call, k_start + k_text + k_stop}) {
      CannedServer server({event_stream(body, end)});
      Waits waits;
      std::exception_ptr error;
      auto response = stream(model_at(server.url(), waits), error).response;
      EXPECT_EQ(caught<ModelConnectionError>(error).phase(), ConnectionPhase::read);
      EXPECT_EQ(response.state, ResponseState::interrupted);
      EXPECT_EQ(server.requests().size(), 1U);
    }
  }
}

TEST(Provider, TakesACleanEarlyEndAsCompleteButNotInsideArguments) {
  CannedServer server(
      {event_stream(k_start + k_text), event_stream(k_start + k_half_call), event_stream("")});
  Waits waits;
  auto model = model_at(server.url(), waits);
  std::exception_ptr error;
  auto early = stream(model, error).response;
  EXPECT_FALSE(error);
  EXPECT_EQ(early.text(), "Hello");
  EXPECT_EQ(early.state, ResponseState::complete);
  EXPECT_EQ(early.finish_reason, std::nullopt);
  auto half = stream(model, error).response;
  EXPECT_EQ(caught<ModelConnectionError>(error).phase(), ConnectionPhase::read);
  EXPECT_EQ(half.state, ResponseState::interrupted);
  stream(model, error);
  EXPECT_STREQ(caught<UnexpectedModelBehavior>(error).what(),
               "The stream ended with neither content nor tool calls");
}

TEST(Provider, ThrowsTheErrorThatAStreamReports) {
  CannedServer server({event_stream(
      k_start + k_text +
      "event: error\ndata: "
      "{\"type\":\"error\",\"error\":{\"type\":\"rate_limit_error\",\"message\":\"slow\"}}\n\n")});
  Waits waits;
  std::exception_ptr error;
  auto response = stream(model_at(server.url(), waits), error).response;
  auto thrown = caught<ModelRateLimitError>(error);
  EXPECT_TRUE(thrown.info().in_stream);
  EXPECT_EQ(caught<ModelHTTPError>(error).status_code(), 429);
  EXPECT_EQ(response.text(), "Hello");
  EXPECT_EQ(server.requests().size(), 1U);
}

TEST(Provider, NamesDamageInAStream) {
  const std::string bad = "data: {\"type\":\"content_block_delta\",\"index\":0,   \n\n";
  CannedServer server({event_stream(k_start + bad + k_stop),
                       {.headers = {{"content-type", "text/html"}}, .body = "<html>gateway</html>"},
                       event_stream("data: " + std::string(std::size_t{9} << 20, 'x'))});
  Waits waits;
  auto model = model_at(server.url(), waits);
  std::exception_ptr error;
  stream(model, error);
  EXPECT_NE(std::string(caught<ModelAPIError>(error).what()).find("Not JSON: "), std::string::npos);
  stream(model, error);
  EXPECT_STREQ(caught<ModelAPIError>(error).what(), "The reply is not JSON: '<html>gateway</html>'");
  stream(model, error);
  EXPECT_NE(std::string(caught<ModelAPIError>(error).what()).find("longer than"), std::string::npos);
}

TEST(Provider, TakesTheLastCumulativeUsageWhateverItHolds) {
  CannedServer server(
      {json(
           R"({"content":[],"usage":{"input_tokens":9007199254740993,"output_tokens":-3,"cache_read_input_tokens":1e3}})"),
       json(R"({"content":[],"usage":null})"), json(R"({"content":[]})")});
  Waits waits;
  auto model = model_at(server.url(), waits);
  auto odd = ask(model).usage;
  EXPECT_EQ(odd.input_tokens, std::int64_t{1} << 53);
  EXPECT_EQ(odd.output_tokens, 0);
  EXPECT_EQ(ask(model).usage.unmeasured_requests, 1);
  EXPECT_EQ(ask(model).usage.unmeasured_requests, 1);
}

TEST(Provider, RefusesRepliesOfAnotherShape) {
  for (const char* body : {"[]", "null", "7", "{}", R"({"content":{}})", R"({"content":[7]})",
                           R"({"content":[{"type":"image"}]})", R"({"content":[{"type":"text"}]})",
                           R"({"content":[{"type":"tool_use","id":"a","name":"b","input":"x"}]})",
                           R"({"content":[{"type":"tool_use","id":1,"name":"b","input":{}}]})"}) {
    CannedServer server({json(body)});
    Waits waits;
    EXPECT_THROW(ask(model_at(server.url(), waits)), UnexpectedModelBehavior) << body;
  }
}

TEST(Provider, RetriesWithTheWaitsThatTheServerAsksFor) {
  auto busy = json(R"({"type":"error","error":{"type":"rate_limit_error","message":"m"}})", 429);
  busy.headers.emplace_back("retry-after", "7");
  CannedServer server({busy, json("", 503), json(k_reply)});
  Waits waits;
  EXPECT_EQ(ask(model_at(server.url(), waits)).text(), "Hello");
  ASSERT_EQ(waits.asked.size(), 2U);
  EXPECT_EQ(waits.asked[0], seconds(7));
  EXPECT_LE(waits.asked[1], seconds(1));
  EXPECT_GE(waits.asked[1], milliseconds(750));
}

TEST(Provider, RetriesAWholeReplyThatBreaksAndAConnectionThatIsRefused) {
  auto broken = json(k_reply.substr(0, 40));
  broken.end = CannedReply::End::cut;
  CannedServer server({broken, json(k_reply)});
  Waits waits;
  EXPECT_EQ(ask(model_at(server.url(), waits)).text(), "Hello");
  std::string gone;
  {
    CannedServer closed({});
    gone = closed.url();
  }
  waits.asked.clear();
  try {
    ask(model_at(gone, waits));
    ADD_FAILURE() << "a closed port answered";
  } catch (const ModelConnectionError& error) {
    EXPECT_EQ(error.phase(), ConnectionPhase::connect);
  }
  EXPECT_EQ(waits.asked.size(), 2U);
}

TEST(Provider, NeverRepeatsWhatWasRefusedForGood) {
  for (int status : {400, 401, 402, 403, 404, 413, 422, 301}) {
    CannedServer server({json("", status), json(k_reply)});
    Waits waits;
    EXPECT_THROW(ask(model_at(server.url(), waits)), ModelHTTPError) << status;
    EXPECT_EQ(server.requests().size(), 1U) << status;
  }
}

TEST(Provider, KeepsAtMost64KiBOfARefusalAndNeverTheKey) {
  CannedServer server({json(std::string(std::size_t{4} << 20, 'x'), 400),
                       json(R"({"error":{"type":"authentication_error","message":"bad"}})", 401)});
  Waits waits;
  auto model = model_at(server.url(), waits);
  try {
    ask(model);
    ADD_FAILURE() << "a refusal was taken";
  } catch (const ModelHTTPError& error) {
    EXPECT_EQ(error.info().body.get<std::string>().size(), std::size_t{64} << 10);
  }
  try {
    ask(model);
    ADD_FAILURE() << "a refusal was taken";
  } catch (const ModelAuthenticationError& error) {
    EXPECT_EQ(std::string(error.what()).find("sk-secret"), std::string::npos);
    EXPECT_EQ(error.code(), ErrorCode::unauthorized);
  }
  EXPECT_EQ(server.requests().front().headers.at("authorization"), "Bearer sk-secret");
}

TEST(Provider, FindsWordsForLongPromptsEmptyAccountsAndWrongNames) {
  auto refusal = [](const char* text) {
    return json(std::string(R"({"error":{"type":"invalid_request_error","message":")") + text + "\"}}", 400);
  };
  CannedServer server({refusal("prompt is too long: 1 > 0"), refusal("Your credit balance is too low"),
                       json(R"({"error":{"type":"not_found_error","message":"model"}})", 404)});
  Waits waits;
  auto model = model_at(server.url(), waits);
  EXPECT_THROW(ask(model), ModelContextWindowExceededError);
  EXPECT_THROW(ask(model), ModelQuotaExceededError);
  model.reset();  // its connection stays open, and the server has one at a time
  auto misspelt = make_anthropic_model("claude-sonet-4-5", {.api_key = "k", .base_url = server.url()});
  try {
    ask(misspelt);
    ADD_FAILURE() << "a refusal was taken";
  } catch (const ModelNotFoundError& error) {
    EXPECT_NE(std::string(error.what()).find("Did you mean 'anthropic:claude-sonnet-4-5'?"),
              std::string::npos);
  }
}

TEST(Provider, GivesUpOnSilence) {
  for (auto end : {CannedReply::End::nothing, CannedReply::End::silent}) {
    CannedServer server({event_stream(k_start + k_text, end), event_stream(k_start + k_text, end)});
    Waits waits;
    std::exception_ptr error;
    auto idle = model_at(server.url(), waits, {{"timeout", 0.2}, {"max_retries", 0}});
    stream(idle, error);
    EXPECT_EQ(caught<ModelTimeoutError>(error).phase(), ConnectionPhase::read);
    auto overall = model_at(server.url(), waits, {{"request_timeout", 0.2}});
    stream(overall, error);
    EXPECT_STREQ(caught<ModelRequestTimeout>(error).what(),
                 "Model 'claude-sonnet-4-5' did not finish within 0.2 seconds");
  }
}

TEST(Provider, CancelsAtOnceInEveryState) {
  for (auto end : {CannedReply::End::nothing, CannedReply::End::silent}) {
    CannedServer server({event_stream(k_start + k_text, end)});
    Waits waits;
    auto model = model_at(server.url(), waits);
    CancellationToken cancel;
    StreamedResponse out;
    out.on_event = [&](const ModelStreamEvent& event) {
      if (std::holds_alternative<PartDeltaEvent>(event)) cancel.cancel();
    };
    std::thread later;
    if (end == CannedReply::End::nothing) {
      later = std::thread([&] {
        while (server.requests().empty()) std::this_thread::yield();
        cancel.cancel();
      });
    }
    try {
      sync_wait(model->request_stream(hi(), Json::object(), {}, out), cancel);
      ADD_FAILURE() << "a cancelled request ended";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::cancelled);
    }
    if (later.joinable()) later.join();
    EXPECT_EQ(out.response.state, ResponseState::interrupted);
  }  // the server's end waits for the connection to be closed
}

TEST(Provider, StopsAStreamWhoseListenerThrows) {
  CannedServer server({event_stream(k_start + k_text, CannedReply::End::silent)});
  Waits waits;
  StreamedResponse out;
  out.on_event = [](const ModelStreamEvent&) { throw std::runtime_error("enough"); };
  EXPECT_THROW(sync_wait(model_at(server.url(), waits)->request_stream(hi(), Json::object(), {}, out)),
               std::runtime_error);
}

TEST(Provider, RefusesSettingsAndHeadersThatCannotBeSent) {
  CannedServer server({});
  Waits waits;
  for (const Json& settings :
       {Json{{"timeout", -1}}, Json{{"timeout", "x"}}, Json{{"max_retries", 1.5}}, Json{{"thinking", "lots"}},
        Json{{"extra_headers", {{"x", "a\r\nb: c"}}}}, Json{{"extra_headers", {{"a b", "c"}}}},
        Json{{"extra_headers", {{"x", 1}}}}, Json{{"tool_choice", 7}}}) {
    EXPECT_THROW(ask(model_at(server.url(), waits, settings)), UserError) << settings;
  }
  EXPECT_THROW(ask(model_at("ftp://127.0.0.1/", waits)), UserError);
  EXPECT_THROW(ask(model_at("not a url", waits)), UserError);
  EXPECT_TRUE(server.requests().empty());
}

TEST(Provider, ServesManyRunsAtOnceOnOneLoopAndOnManyThreads) {
  constexpr int k_runs = 8;
  std::vector<std::unique_ptr<CannedServer>> servers;
  for (int i = 0; i < k_runs; ++i) {
    servers.push_back(std::make_unique<CannedServer>(std::vector<CannedReply>(2, json(k_reply))));
  }
  Waits waits;
  auto both = [&](int i) -> Task<void> {
    auto model = model_at(servers[static_cast<std::size_t>(i)]->url(), waits);
    for (int j = 0; j < 2; ++j) {
      auto response = co_await model->request(hi(), Json::object(), {});
      EXPECT_EQ(response.text(), "Hello");
    }
  };
  boost::asio::io_context loop;
  for (int i = 0; i < k_runs / 2; ++i) boost::asio::co_spawn(loop, both(i), boost::asio::detached);
  loop.run();
  std::vector<std::thread> threads;
  for (int i = k_runs / 2; i < k_runs; ++i) threads.emplace_back([&, i] { sync_wait(both(i)); });
  for (auto& thread : threads) thread.join();
  for (const auto& server : servers) EXPECT_EQ(server->requests().size(), 2U);
}

TEST(Provider, EndsQuietlyWhenItsLoopIsDestroyedInTheMiddle) {
  CannedServer server({event_stream(k_start, CannedReply::End::silent)});
  Waits waits;
  auto model = model_at(server.url(), waits);
  StreamedResponse out;
  auto loop = std::make_unique<boost::asio::io_context>();
  boost::asio::co_spawn(*loop, model->request_stream(hi(), Json::object(), {}, out), boost::asio::detached);
  while (out.response.provider_name != "anthropic") loop->run_one();
  loop.reset();
}

}  // namespace
}  // namespace holt::test
