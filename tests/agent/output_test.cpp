// Typed outputs: what is offered to the model, and what is taken from it.
#include "agent/output_plan.hpp"
#include "agent/scripted.hpp"
#include "holt/agent/agent.hpp"
#include "support/fixtures.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace holt::test {
namespace {

struct City {
  std::string name;
};
BOOST_DESCRIBE_STRUCT(City, (), (name))
void describe(Schema<City>& schema) {
  schema.text("A city.");
}
struct Country {
  std::string code;
};
BOOST_DESCRIBE_STRUCT(Country, (), (code))

Json object(const char* key, Json value) {
  Json result = Json::object();
  result[key] = std::move(value);
  return result;
}

/// The recorded output types that C++ types express, by the name in the table.
std::map<std::string, OutputSpec> recorded_types() {
  OutputSpec named = output_spec<ToolOutput<City>>();
  named.choices[0].tool_name = "done";
  named.choices[0].description = "When finished.";
  named.choices[0].strict = true;
  OutputSpec two_named = output_spec<ToolOutput<std::variant<City, Country>>>();
  two_named.choices[0].tool_name = "city";
  two_named.choices[1].tool_name = "country";
  OutputSpec native_named = output_spec<NativeOutput<City>>();
  native_named.choices[0].tool_name = "N";
  native_named.choices[0].description = "D";
  native_named.choices[0].strict = true;
  return {{"one model", output_spec<City>()},
          {"model without docstring", output_spec<Country>()},
          {"union", output_spec<std::variant<City, Country>>()},
          {"int", output_spec<int>()},
          {"list[str]", output_spec<std::vector<std::string>>()},
          {"bool or model", output_spec<std::variant<bool, City>>()},
          {"named", named},
          {"two named", two_named},
          {"model and text", output_spec<std::variant<City, std::string>>()},
          {"optional model", output_spec<std::optional<City>>()},
          {"text", output_spec<std::string>()},
          {"native", output_spec<NativeOutput<City>>()},
          {"native union", output_spec<NativeOutput<std::variant<City, Country>>>()},
          {"native int", output_spec<NativeOutput<int>>()},
          {"native named", native_named},
          {"prompted", output_spec<PromptedOutput<City>>()},
          {"prompted template", output_spec<PromptedOutput<City>>()}};
}

Json optional_json(const std::optional<std::string>& text) {
  return text ? Json(*text) : Json(nullptr);
}

Json tools_json(const detail::OutputPlan& plan) {
  Json tools = Json::array();
  for (const auto& tool : plan.tools()) {
    Json json = object("name", tool.name);
    json["description"] = optional_json(tool.description);
    json["parameters_json_schema"] = tool.parameters_json_schema;
    json["strict"] = tool.strict ? Json(*tool.strict) : Json(nullptr);
    json["outer_typed_dict_key"] = optional_json(tool.outer_typed_dict_key);
    tools.push_back(std::move(json));
  }
  return tools;
}

Json object_json(const detail::OutputPlan& plan) {
  if (!plan.object()) return nullptr;
  Json json = object("name", plan.object()->name.empty() ? Json(nullptr) : Json(plan.object()->name));
  json["description"] = optional_json(plan.object()->description);
  json["json_schema"] = plan.object()->json_schema;
  json["strict"] = plan.object()->strict ? Json(*plan.object()->strict) : Json(nullptr);
  return json;
}

TEST(Output, TypesAreOfferedAsRecorded) {
  Tally tally("output definitions");
  const auto types = recorded_types();
  const Json table = read_fixture(fixtures_directory() / "misc/output_definitions.json");
  for (const auto& row : table["cases"]) {
    auto found = types.find(row["output_type"].get<std::string>());
    if (found == types.end()) {
      tally.later();
      continue;
    }
    SCOPED_TRACE(found->first);
    const detail::OutputPlan plan(found->second);
    const bool same = json_equal(tools_json(plan), row["tools"]) &&
                      json_equal(object_json(plan), row["object"]) &&
                      plan.allows_text() == row["allows_text"] && plan.allows_null() == row["allows_none"];
    EXPECT_TRUE(same) << dump_json(tools_json(plan)) << "\n" << dump_json(object_json(plan));
    tally.count(same);
  }
  EXPECT_GE(tally.passed(), 16U);
}

TEST(Output, FencesAreStrippedAsRecorded) {
  const Json table = read_fixture(fixtures_directory() / "misc/text_functions.json");
  for (const auto& row : table["strip_fences"])
    EXPECT_EQ(detail::strip_fence(row["text"].get<std::string>()), row["result"].get<std::string>())
        << row["text"];
}

TEST(Output, ScalarsListsAndUnionsComeBackTyped) {
  EXPECT_EQ(Agent(script({call("final_result", object("response", 7))})).run_sync<int>("go").output(), 7);
  EXPECT_EQ(Agent(script({R"({"response": [1, 2]})"})).run_sync<std::vector<int>>("go").output(),
            (std::vector<int>{1, 2}));
  auto either = Agent(script({call("final_result_Country", object("code", "NO"))}))
                    .run_sync<std::variant<City, Country>>("go")
                    .output();
  EXPECT_EQ(std::get<Country>(either).code, "NO");
  auto native = Agent(script({R"({"result": {"kind": "Country", "data": {"code": "NO"}}})"}))
                    .run_sync<NativeOutput<std::variant<City, Country>>>("go")
                    .output();
  EXPECT_EQ(std::get<Country>(native).code, "NO");
  auto text = Agent(script({"plain"})).run_sync<std::variant<City, std::string>>("go").output();
  EXPECT_EQ(std::get<std::string>(text), "plain");
}

TEST(Output, AnEmptyResponseIsNullWhereNullIsAllowed) {
  EXPECT_EQ(Agent(script({Parts{}})).run_sync<std::optional<City>>("go").output().has_value(), false);
  EXPECT_EQ(Agent(script({call("final_result_City", object("name", "Oslo"))}))
                .run_sync<std::optional<City>>("go")
                .output()
                ->name,
            "Oslo");
}

TEST(Output, ValidatorsMayChangeAValueOrAskForAnother) {
  OutputSpec spec = output_spec<City>();
  spec.validators.push_back([](const RunContext&, Json value) {
    if (value["name"] == "Paris") throw ModelRetry("Not Paris.");
    value["name"] = value["name"].get<std::string>() + "!";
    return value;
  });
  auto agent = Agent(
      script({call("final_result", object("name", "Paris")), call("final_result", object("name", "Oslo"))}));
  auto result = sync_wait(agent.run<City>("go", RunOptions(), spec));
  EXPECT_EQ(result.output().name, "Oslo!");
  const auto& retried = std::get<ToolReturnPart>(std::get<ModelRequest>(result.all_messages()[2]).parts[0]);
  EXPECT_EQ(retried.content, "Not Paris.");
}

TEST(Output, TheBudgetOfOutputsEndsTheRun) {
  auto agent = Agent(script({"x", "y"}), {.retries = Retries(1, 1)});
  try {
    agent.run_sync<City>("go");
    FAIL() << "expected UnexpectedModelBehavior";
  } catch (const UnexpectedModelBehavior& e) {
    EXPECT_STREQ(e.what(), "Output retries used up (1)");
    EXPECT_EQ(run_record(e)->all_messages().size(), 4U);
  }
}

TEST(Output, ExhaustiveRunsEverythingAndTheFirstValidOutputWins) {
  std::atomic<int> ran = 0;
  Agent agent(script({Parts{call("final_result", object("name", 5), "c1"), call("f", nullptr, "c2"),
                            call("final_result", object("name", "A"), "c3"),
                            call("final_result", object("name", "B"), "c4")}}),
              {.tools = {tool("f", "", [&ran] { return ++ran; })},
               .retries = Retries(1, 0),
               .end_strategy = EndStrategy::exhaustive});
  auto result = agent.run_sync<City>("go");
  EXPECT_EQ(result.output().name, "A");
  EXPECT_EQ(ran, 1);
  const auto& parts = std::get<ModelRequest>(result.all_messages().back()).parts;
  EXPECT_EQ(std::get<ToolReturnPart>(parts[0]).content, "Output tool skipped: its output did not validate.");
  EXPECT_EQ(std::get<ToolReturnPart>(parts[3]).content,
            "Output tool done, but another output became the final result.");
  auto shown = result.all_messages_with_output("City it is.");
  EXPECT_EQ(std::get<ToolReturnPart>(std::get<ModelRequest>(shown.back()).parts[2]).content, "City it is.");
}

TEST(Output, ToolChoicesThatNeverEndAreRefused) {
  auto f = tool("f", "", [] { return 1; });
  EXPECT_THROW(Agent(script({"x"}), {.tools = {f}, .model_settings = object("tool_choice", "required")})
                   .run_sync("go"),
               UserError);
  EXPECT_THROW(Agent(script({"x"}), {.tools = {f}})
                   .run_sync("go", {.model_settings = object("tool_choice", Json::array({"f"}))}),
               UserError);
  EXPECT_NO_THROW(Agent(script({call("final_result", object("name", "x"))}),
                        {.model_settings = object("tool_choice", Json::array({"final_result"}))})
                      .run_sync<City>("go"));
}

TEST(Output, NothingToSendAndNoModelAreUserErrors) {
  EXPECT_THROW(Agent(script({"x"})).run_sync(Prompt()), UserError);
  EXPECT_THROW(Agent(AgentOptions()).run_sync("go"), UserError);
  EXPECT_THROW(Agent("nonsense:model"), UserError);
  EXPECT_EQ(Agent(AgentOptions()).run_sync("go", {.model = script({"x"})}).output(), "x");
}

TEST(Output, RunAndConversationIds) {
  auto first = Agent(script({"x"})).run_sync("go");
  auto options = [&] { return RunOptions{.message_history = first.all_messages()}; };
  EXPECT_EQ(Agent(script({"x"})).run_sync("go", options()).conversation_id(), first.conversation_id());
  RunOptions fresh = options();
  fresh.conversation_id = "new";
  EXPECT_NE(Agent(script({"x"})).run_sync("go", fresh).conversation_id(), first.conversation_id());
  RunOptions repeated = options();
  repeated.run_id = first.run_id();
  EXPECT_THROW(Agent(script({"x"})).run_sync("go", repeated), UserError);
  EXPECT_THROW(Agent(script({"x"})).run_sync("go", {.run_id = ""}), UserError);
}

}  // namespace
}  // namespace holt::test
