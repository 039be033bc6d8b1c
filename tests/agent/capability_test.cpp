// Capabilities: order, hooks, events, what one run remembers.
#include "agent/scripted.hpp"
#include "holt/agent/agent.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace holt::test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

using Log = std::shared_ptr<std::vector<std::string>>;

/// Writes down when its hooks are called.
class Recorder : public CapabilityBase {
 public:
  Recorder(std::string name, Log log, CapabilityOrdering ordering = {})
      : name_(std::move(name)), log_(std::move(log)), ordering_(std::move(ordering)) {}
  std::string id() const override { return name_; }
  CapabilityOrdering ordering() const override { return ordering_; }
  Task<void> before_run(RunContext&) const override {
    note("before_run");
    co_return;
  }
  Task<Json> wrap_run(RunContext&, RunHandler handler) const override {
    note("enter_run");
    auto pending = handler();
    Json output = co_await std::move(pending);
    note("leave_run");
    co_return output;
  }
  Task<Json> after_run(RunContext&, Json output) const override {
    note("after_run");
    co_return output;
  }
  Task<void> before_model_request(RunContext&, ModelRequestContext&) const override {
    note("before_request");
    co_return;
  }
  Task<ModelResponse> wrap_model_request(RunContext&, ModelRequestContext& request,
                                         ModelRequestHandler handler) const override {
    note("enter_request");
    auto pending = handler(request);
    ModelResponse response = co_await std::move(pending);
    note("leave_request");
    co_return response;
  }
  Task<ModelResponse> after_model_request(RunContext&, const ModelRequestContext&,
                                          ModelResponse response) const override {
    note("after_request");
    co_return response;
  }

 private:
  void note(const char* what) const { log_->push_back(name_ + " " + what); }
  std::string name_;
  Log log_;
  CapabilityOrdering ordering_;
};

TEST(Capabilities, HooksNestWithTheFirstOutermost) {
  auto log = std::make_shared<std::vector<std::string>>();
  Agent(script({"ok"}), {.capabilities = {Recorder("a", log), Recorder("b", log)}}).run_sync("go");
  EXPECT_THAT(*log, ElementsAre("a before_run", "b before_run", "a enter_run", "b enter_run",
                                "a before_request", "b before_request", "a enter_request", "b enter_request",
                                "b leave_request", "a leave_request", "b after_request", "a after_request",
                                "b leave_run", "a leave_run", "b after_run", "a after_run"));
}

std::vector<std::string> order_of(std::vector<Capability> capabilities) {
  Agent agent("test", {.capabilities = std::move(capabilities)});
  std::vector<std::string> ids;
  for (const auto& capability : agent.capabilities()) ids.push_back(capability->id());
  return ids;
}

TEST(Capabilities, OrderingsAreKept) {
  using Position = CapabilityOrdering::Position;
  auto recorder = [](std::string name, CapabilityOrdering ordering = {}) {
    return Recorder(std::move(name), nullptr, std::move(ordering));
  };
  EXPECT_THAT(order_of({recorder("a"), recorder("b", {.position = Position::outermost}),
                        recorder("c", {.position = Position::innermost}), recorder("d")}),
              ElementsAre("b", "a", "d", "c"));
  EXPECT_THAT(order_of({recorder("a"), recorder("b"), recorder("c", {.wraps = {"a"}})}),
              ElementsAre("b", "c", "a"));
  EXPECT_THAT(order_of({recorder("a", {.wrapped_by = {"b"}}), recorder("b")}), ElementsAre("b", "a"));
  EXPECT_THROW(order_of({recorder("a", {.wraps = {"b"}}), recorder("b", {.wraps = {"a"}})}), UserError);
  EXPECT_THROW(order_of({recorder("a", {.requires_ids = {"b"}})}), UserError);
  EXPECT_THROW(order_of({recorder("a"), recorder("a")}), UserError);
}

/// Consists of two others.
class Bundle : public CapabilityBase {
 public:
  explicit Bundle(Log log) : log_(std::move(log)) {}
  std::string id() const override { return "bundle"; }
  std::vector<Capability> parts() const override { return {Recorder("x", log_), Recorder("y", log_)}; }

 private:
  Log log_;
};

TEST(Capabilities, PartsOfABundleStandBehindIt) {
  EXPECT_THAT(order_of({Bundle(nullptr), Recorder("z", nullptr)}), ElementsAre("bundle", "x", "y", "z"));
}

/// Counts requests of one run, in the instance of that run.
class Counter : public CapabilityBase {
 public:
  CapabilityPtr for_run(const RunContext&) const override { return std::make_shared<Counter>(); }
  Instructions instructions() const override {
    return [this] { return "Request " + std::to_string(++count_) + "."; };
  }

 private:
  mutable int count_ = 0;
};

TEST(Capabilities, WhatARunRemembersIsItsOwn) {
  Agent agent(script({"", "ok", "ok"}), {.capabilities = {Counter()}});
  auto first = agent.run_sync("go");
  EXPECT_EQ(std::get<ModelRequest>(first.all_messages()[2]).instructions, "Request 2.");
  EXPECT_EQ(std::get<ModelRequest>(agent.run_sync("go").all_messages()[0]).instructions, "Request 1.");
}

/// Hooks that change things.
class Meddler : public CapabilityBase {
 public:
  SettingsSource model_settings() const override {
    return [](const RunContext& ctx) {
      Json settings = Json::object();
      settings["seen"] = ctx.model_settings().value("max_tokens", 0);
      return settings;
    };
  }
  std::vector<ToolDefinition> prepare_tools(const RunContext&,
                                            std::vector<ToolDefinition> tools) const override {
    std::erase_if(tools, [](const auto& tool) { return tool.name == "hidden"; });
    return tools;
  }
  Task<Json> before_tool_execute(RunContext&, ToolCallInfo, Json arguments) const override {
    arguments["n"] = arguments["n"].get<int>() + 1;
    co_return arguments;
  }
  Task<ToolValue> after_tool_execute(RunContext&, ToolCallInfo, ToolValue result) const override {
    std::get<ToolReturn>(result).metadata = "seen";
    co_return result;
  }
  Task<std::optional<ToolValue>> on_tool_execute_error(RunContext&, ToolCallInfo,
                                                       std::exception_ptr) const override {
    ToolReturn value;
    value.return_value = "recovered";
    co_return ToolValue(value);
  }
};

struct Number {
  int n = 0;
};
BOOST_DESCRIBE_STRUCT(Number, (), (n))

TEST(Capabilities, HooksMayChangeToolsArgumentsAndResults) {
  Json args = Json::object();
  args["n"] = 1;
  Json settings = Json::object();
  settings["max_tokens"] = 7;
  Agent agent(script({Reply::Function([&](const auto&, const FunctionInfo& info) {
                        EXPECT_EQ(info.function_tools.size(), 2U);
                        EXPECT_EQ(info.model_settings.value("seen", 0), 7);
                        return tool_call_response({call("f", args, "1"), call("bad", args, "2")});
                      }),
                      "done"}),
              {.capabilities = {Meddler()},
               .tools = {tool("f", "", [](Number a) { return a.n; }),
                         tool("bad", "", [](Number) -> int { throw std::runtime_error("oops"); }),
                         tool("hidden", "", [] { return 1; })},
               .model_settings = settings});
  auto messages = agent.run_sync("go").all_messages();
  const auto& parts = std::get<ModelRequest>(messages[2]).parts;
  EXPECT_EQ(std::get<ToolReturnPart>(parts[0]).content, 2);
  EXPECT_EQ(std::get<ToolReturnPart>(parts[0]).metadata, "seen");
  EXPECT_EQ(std::get<ToolReturnPart>(parts[1]).content, "recovered");
}

class Critic : public CapabilityBase {
 public:
  Task<ModelResponse> after_model_request(RunContext&, const ModelRequestContext&,
                                          ModelResponse response) const override {
    if (response.text() == "bad") throw ModelRetry("Better, please.");
    co_return response;
  }
  Task<std::optional<ModelResponse>> on_model_request_error(RunContext&, const ModelRequestContext&,
                                                            std::exception_ptr) const override {
    co_return text_response("instead");
  }
  Task<std::optional<Json>> on_run_error(RunContext&, std::exception_ptr) const override {
    co_return Json("rescued");
  }
};

TEST(Capabilities, AHookMayAskForAnotherResponse) {
  auto result = Agent(script({"bad", "good"}), {.capabilities = {Critic()}}).run_sync("go");
  EXPECT_EQ(result.output(), "good");
  ASSERT_EQ(result.all_messages().size(), 4U);
  EXPECT_EQ(std::get<ModelResponse>(result.all_messages()[1]).text(), "bad");
  const auto& feedback =
      std::get<RetryFeedbackPart>(std::get<ModelRequest>(result.all_messages()[2]).parts[0]);
  EXPECT_EQ(feedback.content, "Better, please.");
  EXPECT_EQ(feedback.retry.cause, RetryCause::model_retry);
}

TEST(Capabilities, AnErrorHookRecoversARequestOrARun) {
  auto failing = make_function_model(
      ModelFunction([](const auto&, const auto&) -> ModelResponse { throw std::runtime_error("down"); }));
  EXPECT_EQ(Agent(failing, {.capabilities = {Critic()}}).run_sync("go").output(), "instead");
  auto always_bad =
      make_function_model(ModelFunction([](const auto&, const auto&) { return text_response("bad"); }));
  EXPECT_EQ(Agent(always_bad, {.capabilities = {Critic()}}).run_sync("go").output(), "rescued");
}

class Listener : public CapabilityBase {
 public:
  explicit Listener(Log log) : log_(std::move(log)) {}
  bool listens_to_events() const override { return true; }
  void on_event(const RunContext&, const AgentEvent& event) const override {
    log_->push_back(event_to_json(event)["event_kind"].get<std::string>());
  }

 private:
  Log log_;
};

TEST(Capabilities, AListenerHearsEverythingAndRequestsAreStreamed) {
  auto log = std::make_shared<std::vector<std::string>>();
  auto tells = tool("tells", "", [](RunContext& ctx) {
    CustomEvent event;
    event.name = "news";
    ctx.emit(event);
    return 1;
  });
  Agent agent(script({call("tells", "{}", "c1"), "ok"}), {.capabilities = {Listener(log)}, .tools = {tells}});
  agent.run_sync("go");
  EXPECT_THAT(*log, ::testing::Contains("part_start"));
  std::vector<std::string> handling;
  for (const auto& kind : *log)
    if (kind == "custom" || kind.starts_with("function")) handling.push_back(kind);
  EXPECT_THAT(handling, ElementsAre("function_tool_call", "custom", "function_tool_result"));
}

TEST(Capabilities, WhatAHandlerThrowsEndsTheRun) {
  EXPECT_THROW(Agent(script({"ok"}))
                   .run_sync("go", {.event_stream_handler =
                                        [](const RunContext&, const AgentEvent&) {
                                          throw std::runtime_error("full");
                                        }}),
               std::runtime_error);
}

TEST(Capabilities, DepsAreTypedAndMissingOnesAreUserErrors) {
  auto f = tool("f", "", [](RunContext& ctx) { return ctx.deps<std::string>(); });
  auto agent = [&] { return Agent(script({call("f"), "ok"}), {.tools = {f}}); };
  auto result = agent().run_sync("go", {.deps = std::string("hello")});
  EXPECT_EQ(std::get<ToolReturnPart>(std::get<ModelRequest>(result.all_messages()[2]).parts[0]).content,
            "hello");
  std::string shared = "by reference";
  EXPECT_NO_THROW(agent().run_sync("go", {.deps = std::ref(shared)}));
  EXPECT_THROW(agent().run_sync("go", {.deps = 5}), UserError);
  EXPECT_THROW(agent().run_sync("go"), UserError);
}

}  // namespace
}  // namespace holt::test
