// Cancellation at every moment of a run: it ends at once, with all that was done on record.
#include "agent/scripted.hpp"
#include "holt/agent/agent.hpp"

#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace holt::test {
namespace {

using Clock = std::chrono::steady_clock;
const Json k_empty = Json::object();

ModelPtr slow_model(std::function<void()> when_asked) {
  return make_function_model(
      AsyncModelFunction([when_asked](const MessageHistory&, const FunctionInfo&) -> Task<ModelResponse> {
        when_asked();
        co_await sleep_for(std::chrono::hours(1));
        co_return text_response("never");
      }));
}

/// The record of a run that has to be cancelled, and soon.
std::shared_ptr<const RunRecord> cancelled_record(const std::function<void()>& run) {
  const auto start = Clock::now();
  try {
    run();
  } catch (const RunCancelled& e) {
    EXPECT_STREQ(e.what(), "Run cancelled.");
    EXPECT_LT(Clock::now() - start, std::chrono::seconds(10));
    return run_record(e);
  }
  ADD_FAILURE() << "expected RunCancelled";
  return nullptr;
}

TEST(Cancel, BeforeTheRunNothingIsSent) {
  bool asked = false;
  CancellationToken token;
  token.cancel();
  token.cancel();
  auto record = cancelled_record(
      [&] { Agent(slow_model([&] { asked = true; })).run_sync("go", {.cancellation_token = token}); });
  ASSERT_TRUE(record);
  EXPECT_FALSE(asked);
  EXPECT_TRUE(record->all_messages().empty());
}

TEST(Cancel, DuringAModelRequestFromAnotherThread) {
  CancellationToken token;
  std::jthread canceller;
  auto record = cancelled_record([&] {
    Agent(slow_model([&] {
      canceller = std::jthread([token] { token.cancel(); });
    })).run_sync("go", {.cancellation_token = token});
  });
  ASSERT_TRUE(record);
  EXPECT_EQ(record->all_messages().size(), 1U);
  EXPECT_EQ(record->usage().requests, 0);
  auto again = Agent(script({"fine"})).run_sync("go on", {.message_history = record->all_messages()});
  EXPECT_EQ(again.output(), "fine");
}

TEST(Cancel, DuringAStreamThePartialResponseStays) {
  CancellationToken token;
  FunctionModelOptions options;
  options.stream = [](const MessageHistory&, const FunctionInfo&, const EmitDelta& emit) -> Task<void> {
    emit("Hello, ");
    emit("wor");
    co_await sleep_for(std::chrono::hours(1));
  };
  auto record = cancelled_record([&] {
    Agent(make_stream_function_model(options))
        .run_sync("go", {.cancellation_token = token,
                         .event_stream_handler = [&](const RunContext&, const AgentEvent& event) {
                           if (std::holds_alternative<PartDeltaEvent>(event)) token.cancel();
                         }});
  });
  ASSERT_TRUE(record);
  ASSERT_EQ(record->all_messages().size(), 2U);
  const auto& response = std::get<ModelResponse>(record->all_messages()[1]);
  EXPECT_EQ(response.state, ResponseState::interrupted);
  EXPECT_EQ(response.text(), "Hello, wor");
  EXPECT_EQ(record->usage().requests, 1);
}

TEST(Cancel, DuringToolsFinishedOnesKeepTheirResult) {
  CancellationToken token;
  std::atomic<bool> cleaned_up = false;
  Agent agent(
      script({Parts{call("quick", k_empty, "1"), call("stuck", k_empty, "2"), call("stop", k_empty, "3")}}),
      {.tools = {tool("quick", "", []() -> Task<std::string> { co_return "done"; }),
                 tool("stuck", "",
                      [&](RunContext& ctx) {
                        std::promise<void> told;
                        auto registration = ctx.cancellation().on_cancel([&] { told.set_value(); });
                        told.get_future().wait_for(std::chrono::seconds(20));
                        cleaned_up = true;
                        throw Error(ErrorCode::cancelled, "stopped");
                      }),
                 tool("stop", "", [token]() -> Task<std::string> {
                   token.cancel();
                   co_await sleep_for(std::chrono::hours(1));
                   co_return "never";
                 })}});
  auto record = cancelled_record([&] { agent.run_sync("go", {.cancellation_token = token}); });
  ASSERT_TRUE(record);
  EXPECT_TRUE(cleaned_up) << "the run ends after its tools";
  ASSERT_EQ(record->all_messages().size(), 3U);
  const auto& answers = std::get<ModelRequest>(record->all_messages().back());
  EXPECT_EQ(answers.state, RequestState::interrupted);
  ASSERT_EQ(answers.parts.size(), 1U);
  EXPECT_EQ(std::get<ToolReturnPart>(answers.parts[0]).content, "done");

  auto again = Agent(script({"fine"})).run_sync("go on", {.message_history = record->all_messages()});
  const auto& repaired = std::get<ModelRequest>(again.all_messages()[2]);
  ASSERT_EQ(repaired.parts.size(), 3U);
  EXPECT_EQ(std::get<ToolReturnPart>(repaired.parts[2]).outcome, ToolOutcome::interrupted);
}

TEST(Cancel, WithoutAnyFinishedToolTheHistoryCanBeContinuedToo) {
  CancellationToken token;
  Agent agent(script({call("stop", k_empty, "3")}),
              {.tools = {tool("stop", "", [token]() -> Task<std::string> {
                 token.cancel();
                 co_await sleep_for(std::chrono::hours(1));
                 co_return "never";
               })}});
  auto record = cancelled_record([&] { agent.run_sync("go", {.cancellation_token = token}); });
  auto again = Agent(script({"fine"})).run_sync("go on", {.message_history = record->all_messages()});
  EXPECT_EQ(again.output(), "fine");
}

TEST(Cancel, BetweenAToolAndTheNextRequestKeepsTheResult) {
  Agent agent(script({call("f", k_empty, "1")}), {.tools = {tool("f", "", [](RunContext& ctx) {
                                                    ctx.cancel();
                                                    return "done";
                                                  })}});
  auto record = cancelled_record([&] { agent.run_sync("go"); });
  ASSERT_TRUE(record);
  ASSERT_EQ(record->all_messages().size(), 3U);
  EXPECT_EQ(std::get<ModelRequest>(record->all_messages().back()).parts.size(), 1U);
}

TEST(Cancel, ATimeoutOfTheRunIsRunTimedOut) {
  Agent agent(slow_model([] {}));
  try {
    agent.run_sync("go", {.timeout = std::chrono::milliseconds(20)});
    FAIL() << "expected RunTimedOut";
  } catch (const RunTimedOut& e) {
    EXPECT_STREQ(e.what(), "Run timed out.");
    EXPECT_EQ(e.code(), ErrorCode::timeout);
    EXPECT_EQ(run_record(e)->all_messages().size(), 1U);
  }
}

TEST(Cancel, OfTheAwaiterReachesTheRun) {
  CancellationToken token;
  Agent agent(slow_model([token] { token.cancel(); }));
  EXPECT_THROW(sync_wait(agent.run("go"), token), RunCancelled);
}

TEST(Cancel, OneTokenServesSeveralRuns) {
  CancellationToken token;
  std::atomic<int> asked = 0;
  Agent agent(slow_model([&] {
    if (++asked == 2) token.cancel();
  }));
  std::atomic<int> cancelled = 0;
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 2; ++i)
      threads.emplace_back([&] {
        try {
          agent.run_sync("go", {.cancellation_token = token});
        } catch (const RunCancelled&) {
          ++cancelled;
        }
      });
  }
  EXPECT_EQ(cancelled, 2);
}

}  // namespace
}  // namespace holt::test
