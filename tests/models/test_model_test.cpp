#include "holt/models/test_model.hpp"

#include "holt/base/error.hpp"
#include "holt/base/task.hpp"
#include "holt/models/errors.hpp"
#include "support/fixtures.hpp"

#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace holt {
namespace {

MessageHistory ask(const std::string& text) {
  return {ModelRequest{.parts = {UserPromptPart{.content = text}}}};
}

ToolDefinition weather() {
  return {.name = "get_weather",
          .parameters_json_schema = Json{
              {"type", "object"}, {"properties", {{"city", {{"type", "string"}}}}}, {"required", {"city"}}}};
}

ModelResponse request(const ModelPtr& model, MessageHistory messages,
                      ModelRequestParameters parameters = {}) {
  return sync_wait(model->request(std::move(messages), Json::object(), std::move(parameters)));
}

std::vector<std::string> stream_events(const ModelPtr& model, StreamedResponse& stream,
                                       ModelRequestParameters parameters = {}) {
  std::vector<std::string> kinds;
  stream.on_event = [&](const ModelStreamEvent& event) {
    kinds.push_back(event_to_json(event).at("event_kind").get<std::string>());
  };
  sync_wait(model->request_stream(ask("hi"), Json::object(), std::move(parameters), stream));
  return kinds;
}

TEST(TestModel, CallsEachToolOnceThenAnswersWithTheirResults) {
  auto model = make_test_model();
  auto messages = ask("test");
  auto first = request(model, messages, {.function_tools = {weather()}});
  ASSERT_EQ(first.tool_calls().size(), 1U);
  EXPECT_EQ(first.tool_calls()[0].tool_call_id, "pyd_ai_tool_call_id__get_weather");
  EXPECT_EQ(first.tool_calls()[0].args, (Json{{"city", "a"}}));
  EXPECT_EQ(first.provider_name, "test");
  messages.push_back(first);
  messages.push_back(
      ModelRequest{.parts = {ToolReturnPart{.tool_name = "get_weather",
                                            .content = "sunny",
                                            .tool_call_id = "pyd_ai_tool_call_id__get_weather"}}});
  auto second = request(model, messages, {.function_tools = {weather()}});
  EXPECT_EQ(second.text(), R"({"get_weather":"sunny"})");
  EXPECT_EQ(second.usage.input_tokens, 50 + 1 + 1);
}

TEST(TestModel, CallsAgainWhatWasToBeRetried) {
  auto model = make_test_model();
  auto messages = ask("test");
  messages.push_back(request(model, messages, {.function_tools = {weather()}}));
  messages.push_back(ModelRequest{.parts = {ToolReturnPart{.tool_name = "get_weather",
                                                           .content = "no",
                                                           .tool_call_id = "pyd_ai_tool_call_id__get_weather",
                                                           .outcome = ToolOutcome::retried}}});
  auto again = request(model, messages, {.function_tools = {weather()}});
  ASSERT_EQ(again.tool_calls().size(), 1U);
  EXPECT_TRUE(again.tool_calls()[0].tool_call_id.starts_with("pyd_ai_"));
  EXPECT_NE(again.tool_calls()[0].tool_call_id, "pyd_ai_tool_call_id__get_weather");
}

TEST(TestModel, GivesItsOutputThroughTheOutputToolWhereTextIsNone) {
  ToolDefinition output{
      .name = "final_result", .parameters_json_schema = Json{{"type", "object"}}, .kind = ToolKind::output};
  auto response = request(make_test_model({.custom_output_args = Json{{"x", 1}}}), ask("test"),
                          {.output_tools = {output}, .output_mode = OutputMode::automatic});
  ASSERT_EQ(response.tool_calls().size(), 1U);
  EXPECT_EQ(response.tool_calls()[0].args, (Json{{"x", 1}}));
}

TEST(TestModel, RepeatsTheRecordedHistories) {
  for (const char* name : {"test_model_plain", "test_model_tools"}) {
    auto recorded =
        test::read_fixture(test::fixtures_directory() / "messages" / (std::string(name) + ".json"));
    auto history = messages_from_json(recorded.at("dump").get<std::string>());
    for (std::size_t i = 1; i < history.size(); i += 2) {
      const auto& expected = std::get<ModelResponse>(history[i]);
      auto usage = estimate_usage({history.begin(), history.begin() + static_cast<long>(i)}, expected);
      EXPECT_EQ(usage.input_tokens, expected.usage.input_tokens) << name << " " << i;
      EXPECT_EQ(usage.output_tokens, expected.usage.output_tokens) << name << " " << i;
    }
  }
}

TEST(TestModel, StreamsTextInWordsAndASingleWordInHalves) {
  StreamedResponse words;
  EXPECT_EQ(stream_events(make_test_model({.custom_output_text = "one two three"}), words),
            (std::vector<std::string>{"part_start", "final_result", "part_delta", "part_delta", "part_end"}));
  EXPECT_EQ(words.response.text(), "one two three");
  EXPECT_EQ(words.response.state, ResponseState::complete);
  StreamedResponse halves;
  EXPECT_EQ(stream_events(make_test_model({.custom_output_text = "h\xc3\xa9llo"}), halves).size(), 4U);
  EXPECT_EQ(halves.response.text(), "h\xc3\xa9llo");
}

TEST(FunctionModel, AsksItsFunctionAndEstimatesTheUsage) {
  auto model = make_function_model([](const MessageHistory& messages, const FunctionInfo& info) {
    EXPECT_EQ(info.function_tools.size(), 1U);
    EXPECT_EQ(info.instructions, "Be brief.\n\nBe kind.");
    return text_response("got " + std::to_string(messages.size()));
  });
  ModelRequestParameters parameters{.function_tools = {weather()}};
  parameters.instruction_parts = {{.content = "Be brief."}, {.content = "Be kind."}};
  auto response = request(model, ask("hi"), parameters);
  EXPECT_EQ(response.text(), "got 1");
  EXPECT_EQ(response.model_name, "function::");
  EXPECT_EQ(response.provider_name, std::nullopt);
  EXPECT_EQ(response.usage.input_tokens, 51);
  EXPECT_EQ(response.usage.output_tokens, 2);
}

TEST(FunctionModel, StreamsWhatItsStreamFunctionEmits) {
  auto model = make_stream_function_model(
      {.stream = [](const MessageHistory&, const FunctionInfo&, const EmitDelta& emit) -> Task<void> {
        emit(FunctionThinkingDelta{.index = 0, .content = "hm"});
        emit("hel");
        emit("lo");
        emit(FunctionCallDelta{.index = 1, .json_args = "{\"a\":"});
        emit(FunctionCallDelta{.index = 1, .name = "f", .tool_call_id = "c1"});
        emit(FunctionCallDelta{.index = 1, .json_args = "1}"});
        co_return;
      }});
  StreamedResponse stream;
  stream_events(model, stream);
  ASSERT_EQ(stream.response.parts.size(), 3U);
  EXPECT_EQ(stream.response.text(), "hello");
  auto call = stream.response.tool_calls().at(0);
  EXPECT_EQ(call.args, "{\"a\":1}");
  EXPECT_EQ(call.tool_call_id, "c1");
}

TEST(FunctionModel, RefusesAStreamOfNothingAndAMixOfKinds) {
  auto nothing = make_stream_function_model({.stream = [](const MessageHistory&, const FunctionInfo&,
                                                          const EmitDelta&) -> Task<void> { co_return; }});
  StreamedResponse stream;
  EXPECT_THROW(stream_events(nothing, stream), UserError);
  EXPECT_EQ(stream.response.state, ResponseState::interrupted);
  auto mixed = make_stream_function_model(
      {.stream = [](const MessageHistory&, const FunctionInfo&, const EmitDelta& emit) -> Task<void> {
        emit(FunctionCallDelta{.index = 1, .name = "f"});
        emit(FunctionThinkingDelta{.index = 1, .content = "x"});
        co_return;
      }});
  StreamedResponse other;
  EXPECT_THROW(stream_events(mixed, other), UnexpectedModelBehavior);
}

}  // namespace
}  // namespace holt
