// Calls of tools: order, failures, budgets, limits.
#include "agent/scripted.hpp"
#include "holt/agent/agent.hpp"

#include <future>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace holt::test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

struct Number {
  int n = 0;
};
BOOST_DESCRIBE_STRUCT(Number, (), (n))

Json number_args(int n) {
  Json args = Json::object();
  args["n"] = n;
  return args;
}

const Json k_empty = Json::object();

/// All tool results of a history, in order.
std::vector<ToolReturnPart> results_of(const MessageHistory& history) {
  std::vector<ToolReturnPart> results;
  for (const auto& message : history)
    if (const auto* request = std::get_if<ModelRequest>(&message))
      for (const auto& part : request->parts)
        if (const auto* result = std::get_if<ToolReturnPart>(&part)) results.push_back(*result);
  return results;
}

template <class E>
std::string message_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const E& e) {
    return e.what();
  } catch (const std::exception& e) {
    return std::string("another error: ") + e.what();
  }
  return "no error";
}

TEST(ToolLoop, PlainToolsOfOneResponseRunAtTheSameTime) {
  // Each waits for the other; one after the other they would wait for ever.
  auto first = std::make_shared<std::promise<void>>();
  auto second = std::make_shared<std::promise<void>>();
  auto meet = [](std::promise<void>& mine, std::promise<void>& other) {
    mine.set_value();
    auto met = other.get_future().wait_for(std::chrono::seconds(20)) == std::future_status::ready;
    return std::string(met ? "met" : "alone");
  };
  Agent agent(script({Parts{call("a", k_empty, "c1"), call("b", k_empty, "c2")}, "done"}),
              {.tools = {tool("a", "", [=] { return meet(*first, *second); }),
                         tool("b", "", [=] { return meet(*second, *first); })}});
  for (const auto& result : results_of(agent.run_sync("go").all_messages())) EXPECT_EQ(result.content, "met");
}

TEST(ToolLoop, ASequentialToolRunsAlone) {
  auto log = std::make_shared<std::vector<std::string>>();
  auto step = [log](std::string name) -> Task<std::string> {
    log->push_back(name + " starts");
    co_await sleep_for(std::chrono::milliseconds(10));
    log->push_back(name + " ends");
    co_return name;
  };
  Agent agent(
      script({Parts{call("a", k_empty, "1"), call("alone", k_empty, "2"), call("b", k_empty, "3")}, "done"}),
      {.tools = {tool("a", "", [=] { return step("a"); }),
                 tool("alone", "", [=] { return step("alone"); }, {.sequential = true}),
                 tool("b", "", [=] { return step("b"); })}});
  agent.run_sync("go");
  EXPECT_THAT(*log, ElementsAre("a starts", "a ends", "alone starts", "alone ends", "b starts", "b ends"));
}

TEST(ToolLoop, TwentyCallsEachGetOneAnswerInTheOrderOfTheCalls) {
  Parts calls;
  for (int i = 0; i < 20; ++i)
    calls.push_back(call(i % 3 ? "ok" : "moody", number_args(i), "c" + std::to_string(i)));
  Agent agent(script({calls, "done"}), {.tools = {tool("ok", "", [](Number args) { return args.n; }),
                                                  tool("moody", "", [](Number args) -> int {
                                                    if (args.n == 0) throw ModelRetry("again");
                                                    if (args.n == 3) throw ToolFailed("broken");
                                                    return args.n;
                                                  })}});
  auto results = results_of(agent.run_sync("go").all_messages());
  ASSERT_EQ(results.size(), 20U);
  for (std::size_t i = 0; i < results.size(); ++i)
    EXPECT_EQ(results[i].tool_call_id, "c" + std::to_string(i));
  EXPECT_EQ(results[0].outcome, ToolOutcome::retried);
  EXPECT_EQ(results[3].outcome, ToolOutcome::failed);
}

TEST(ToolLoop, TwoCallsOfOneIdAreRefused) {
  Agent agent(script({Parts{call("f", k_empty, "c1"), call("f", k_empty, "c1")}}),
              {.tools = {tool("f", "", [] { return "x"; })}});
  EXPECT_EQ(message_of<UnexpectedModelBehavior>([&] { agent.run_sync("go"); }),
            "Several function tool calls share a `tool_call_id`: ['c1']");
}

TEST(ToolLoop, ACallWithoutIdGetsOne) {
  auto result =
      Agent(script({call("f"), "done"}), {.tools = {tool("f", "", [] { return "x"; })}}).run_sync("go");
  auto results = results_of(result.all_messages());
  ASSERT_EQ(results.size(), 1U);
  EXPECT_THAT(results[0].tool_call_id, ::testing::StartsWith("pyd_ai_"));
}

TEST(ToolLoop, ABudgetOfNoneEndsAtTheFirstFailureAndOneMeansTwoTries) {
  auto moody = tool("moody", "", []() -> std::string { throw ModelRetry("again"); });
  Agent none(script({call("moody"), "done"}), {.tools = {moody}, .retries = 0});
  EXPECT_EQ(message_of<UnexpectedModelBehavior>([&] { none.run_sync("go"); }),
            "Tool 'moody' has used up its retries (0). If it needs more, raise its limit.");
  Agent one(script({call("moody"), "done"}), {.tools = {moody}});
  EXPECT_EQ(one.run_sync("go").output(), "done");
  Agent twice(script({call("moody"), call("moody"), "done"}), {.tools = {moody}});
  EXPECT_EQ(message_of<UnexpectedModelBehavior>([&] { twice.run_sync("go"); }),
            "Tool 'moody' has used up its retries (1). If it needs more, raise its limit.");
}

TEST(ToolLoop, SuccessResetsTheBudgetAndSeveralFailuresOfAStepCountOnce) {
  auto picky = tool("picky", "", [](Number args) -> std::string {
    if (args.n == 0) throw ModelRetry("not zero");
    return "ok";
  });
  Agent agent(script({Parts{call("picky", number_args(0)), call("picky", number_args(0))},
                      call("picky", number_args(1)), call("picky", number_args(0)),
                      call("picky", number_args(1)), "done"}),
              {.tools = {picky}});
  auto result = agent.run_sync("go");
  EXPECT_EQ(result.output(), "done");
  auto results = results_of(result.all_messages());
  EXPECT_EQ(results[0].retry->attempt, 1);
  EXPECT_EQ(results[1].retry->attempt, 1);
  EXPECT_EQ(results[3].retry->attempt, 1);
}

TEST(ToolLoop, AToolSeesItsRetries) {
  auto seen = std::make_shared<std::vector<std::string>>();
  auto f = tool("f", "",
                [seen](RunContext& ctx) -> std::string {
                  seen->push_back(std::to_string(ctx.retry()) + "/" + std::to_string(ctx.max_retries()) +
                                  (ctx.last_attempt() ? " last" : ""));
                  if (ctx.retry() < 2) throw ModelRetry("again");
                  return ctx.tool_name() + " " + ctx.tool_call_id();
                },
                {.max_retries = 2});
  Agent agent(script({call("f", k_empty, "1"), call("f", k_empty, "2"), call("f", k_empty, "3"), "done"}),
              {.tools = {f}});
  auto result = agent.run_sync("go");
  EXPECT_THAT(*seen, ElementsAre("0/2", "1/2", "2/2 last"));
  EXPECT_EQ(results_of(result.all_messages()).back().content, "f 3");
}

TEST(ToolLoop, AnUnexpectedErrorEndsTheRunAndKeepsWhatIsDone) {
  Agent agent(
      script({Parts{call("good", k_empty, "c1"), call("bad", k_empty, "c2"), call("slow", k_empty, "c3")}}),
      {.tools = {tool("good", "", []() -> Task<std::string> { co_return "done"; }),
                 tool("bad", "",
                      []() -> Task<std::string> {
                        co_await sleep_for(std::chrono::milliseconds(5));
                        throw WorkspaceUnavailableError("the machine is gone");
                      }),
                 tool("slow", "", []() -> Task<std::string> {
                   co_await sleep_for(std::chrono::hours(1));
                   co_return "never";
                 })}});
  try {
    agent.run_sync("go");
    FAIL() << "expected WorkspaceUnavailableError";
  } catch (const WorkspaceUnavailableError& e) {
    auto record = run_record(e);
    ASSERT_TRUE(record);
    EXPECT_EQ(record->usage().requests, 1);
    const auto& last = std::get<ModelRequest>(record->all_messages().back());
    EXPECT_EQ(last.state, RequestState::interrupted);
    auto results = results_of(record->all_messages());
    ASSERT_EQ(results.size(), 1U);
    EXPECT_EQ(results[0].content, "done");
    Agent next(script({"fine"}));
    auto again = next.run_sync("go on", {.message_history = record->all_messages()});
    EXPECT_EQ(results_of(again.all_messages()).size(), 3U) << "each call has exactly one answer";
  }
}

TEST(ToolLoop, AModelThatNeverEndsIsStoppedAtTheRequestLimit) {
  auto endless = make_function_model(
      ModelFunction([](const auto&, const auto&) { return tool_call_response({call("f")}); }));
  Agent agent(endless, {.tools = {tool("f", "", [] { return "x"; })}});
  try {
    agent.run_sync("go");
    FAIL() << "expected UsageLimitExceeded";
  } catch (const UsageLimitExceeded& e) {
    EXPECT_STREQ(e.what(),
                 "One more request would pass request_limit 50. If it needs more, raise the limit.");
    EXPECT_EQ(run_record(e)->usage().requests, 50);
    EXPECT_EQ(run_record(e)->all_messages().size(), 101U);
  }
}

TEST(ToolLoop, ALimitOnToolCallsRunsNoneOfARound) {
  std::atomic<int> ran = 0;
  Agent agent(script({Parts{call("f", k_empty, "1"), call("f", k_empty, "2")}}),
              {.tools = {tool("f", "", [&ran] { return ++ran; })}});
  EXPECT_EQ(
      message_of<UsageLimitExceeded>(
          [&] { agent.run_sync("go", {.usage_limits = {.tool_calls_limit = 1}}); }),
      "These tool calls would pass tool_calls_limit 1 (tool_calls=2). If it needs more, raise the limit.");
  EXPECT_EQ(ran, 0);
}

TEST(ToolLoop, CallsOfACutResponseAreNotRun) {
  std::atomic<int> ran = 0;
  ModelResponse cut = tool_call_response({call("f", number_args(1), "c1"), call("f", "{\"n\": 1", "c2")});
  cut.finish_reason = FinishReason::length;
  Agent agent(script({cut, "done"}), {.tools = {tool("f", "", [&ran](Number) { return ++ran; })}});
  auto results = results_of(agent.run_sync("go").all_messages());
  EXPECT_EQ(ran, 0);
  ASSERT_EQ(results.size(), 2U);
  EXPECT_THAT(results[0].content.get<std::string>(), HasSubstr("token limit"));
  EXPECT_EQ(results[1].outcome, ToolOutcome::retried);
}

TEST(ToolLoop, ACutCallThatSpendsTheBudgetIsNamedAsSuch) {
  ModelResponse cut = tool_call_response({call("f", "{\"n\": 1", "c2")});
  cut.finish_reason = FinishReason::length;
  Agent agent(script({cut}), {.tools = {tool("f", "", [](Number) { return 1; })}, .retries = 0});
  Json settings = Json::object();
  settings["max_tokens"] = 9;
  EXPECT_EQ(
      message_of<IncompleteToolCall>([&] { agent.run_sync("go", {.model_settings = settings}); }),
      "The model reached its token limit (9) inside a tool call, so the arguments are incomplete. Raise "
      "`max_tokens`, or ask for something shorter.");
}

TEST(ToolLoop, NothingSaidAtTheTokenLimitOrByAFilterEndsTheRun) {
  ModelResponse cut;
  cut.finish_reason = FinishReason::length;
  EXPECT_EQ(
      message_of<UnexpectedModelBehavior>([&] { Agent(script({cut})).run_sync("go"); }),
      "The model reached its token limit (provider default) before it said anything. Raise `max_tokens`, or "
      "ask for something shorter.");
  ModelResponse filtered;
  filtered.finish_reason = FinishReason::content_filter;
  filtered.provider_details = Json::parse(R"({"finish_reason": "SAFETY"})");
  EXPECT_THAT(message_of<ContentFilterError>([&] { Agent(script({filtered})).run_sync("go"); }),
              HasSubstr("Stopped by a content filter. Finish reason: 'SAFETY'"));
}

TEST(ToolLoop, ToolReturnsCarryContentAndMetadata) {
  Agent agent(script({Parts{call("f", k_empty, "c1"), call("g", k_empty, "c2")}, "done"}),
              {.tools = {tool("f", "",
                              [] {
                                ToolReturn value;
                                value.return_value = 1;
                                value.content = UserContent("look here");
                                value.metadata = "mine";
                                return value;
                              }),
                         tool("g", "", [] { return ToolDenied{"no"}; })}});
  auto messages = agent.run_sync("go").all_messages();
  const auto& parts = std::get<ModelRequest>(messages[2]).parts;
  ASSERT_EQ(parts.size(), 3U);
  EXPECT_EQ(std::get<ToolReturnPart>(parts[0]).metadata, "mine");
  EXPECT_EQ(std::get<ToolReturnPart>(parts[1]).outcome, ToolOutcome::denied);
  EXPECT_EQ(std::get<std::string>(std::get<UserPromptPart>(parts[2]).content), "look here");
}

TEST(ToolLoop, AnIntegerTooLargeForTheToolIsARetry) {
  Agent agent(script({call("f", R"({"n": 99999999999999999999})"), "done"}),
              {.tools = {tool("f", "", [](Number args) { return args.n; })}});
  auto results = results_of(agent.run_sync("go").all_messages());
  EXPECT_EQ(results.at(0).outcome, ToolOutcome::retried);
}

TEST(ToolLoop, PreparedToolsMayHideAndCheckArguments) {
  ToolOptions hidden;
  hidden.prepare = [](const RunContext&, ToolDefinition) { return std::nullopt; };
  ToolOptions checked;
  checked.check_arguments = [](const RunContext&, const Json& args) {
    if (args["n"] == 0) throw ModelRetry("not zero");
  };
  std::vector<std::string> offered;
  Agent agent(script({Reply::Function([&](const auto&, const FunctionInfo& info) {
                        for (const auto& tool : info.function_tools) offered.push_back(tool.name);
                        return tool_call_response({call("shown", number_args(0))});
                      }),
                      "done"}),
              {.tools = {tool(
                             "hidden", "", [] { return 1; }, hidden),
                         tool("shown", "", [](Number args) { return args.n; }, checked)}});
  auto results = results_of(agent.run_sync("go").all_messages());
  EXPECT_THAT(offered, ElementsAre("shown"));
  EXPECT_EQ(results.at(0).content, "not zero");
  EXPECT_EQ(results.at(0).retry->cause, RetryCause::model_retry);
}

TEST(ToolLoop, ToolsOfOneNameAreRefused) {
  auto f = tool("f", "", [] { return 1; });
  EXPECT_EQ(message_of<UserError>([&] { Agent("test", {.tools = {f, f}}); }), "Two tools have the name 'f'");
  EXPECT_EQ(message_of<UserError>([&] { Agent("test", {.tools = {f}}).run_sync("go", {.tools = {f}}); }),
            "Two tools have the name 'f'");
}

TEST(ToolLoop, ATimeoutOfAPlainToolReachesItsToken) {
  auto waits = tool("waits", "",
                    [](RunContext& ctx) -> std::string {
                      std::promise<void> cancelled;
                      auto registration = ctx.cancellation().on_cancel([&] { cancelled.set_value(); });
                      cancelled.get_future().wait_for(std::chrono::seconds(20));
                      return "too late";
                    },
                    {.timeout = std::chrono::milliseconds(20)});
  auto results =
      results_of(Agent(script({call("waits"), "done"}), {.tools = {waits}}).run_sync("go").all_messages());
  EXPECT_EQ(results.at(0).content, "Timed out after 0.02 seconds.");
}

TEST(ToolLoop, SubAgentsShareUsageAndTheirCancellationIsAFailedResult) {
  Agent child(script({"child says hi", call("stop"), "never"}),
              {.tools = {tool("stop", "", [](RunContext& ctx) {
                 ctx.cancel();
                 return "x";
               })}});
  auto ask = tool("ask", "", [child](RunContext& ctx) -> Task<std::string> {
    RunOptions options;
    options.usage = ctx.usage();
    auto pending = child.run("hi", options);
    auto result = co_await std::move(pending);
    co_return result.output();
  });
  auto result = Agent(script({call("ask"), call("ask"), "done"}), {.tools = {ask}}).run_sync("go");
  auto results = results_of(result.all_messages());
  EXPECT_EQ(results.at(0).content, "child says hi");
  EXPECT_EQ(results.at(1).outcome, ToolOutcome::failed);
  EXPECT_EQ(results.at(1).content, "Sub-agent cancelled: Run cancelled.");
  EXPECT_EQ(result.usage().requests, 5);
}

}  // namespace
}  // namespace holt::test
