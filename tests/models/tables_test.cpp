// The tables that providers are driven by, against the recorded ones.

#include "holt/base/error.hpp"
#include "holt/models/model.hpp"
#include "holt/models/profile.hpp"
#include "holt/models/test_model.hpp"
#include "models/http_retry.hpp"
#include "models/model_json.hpp"
#include "models/schema_transform.hpp"
#include "models/tool_choice.hpp"
#include "support/fixtures.hpp"

#include <algorithm>

#include <gtest/gtest.h>

namespace holt::test {
namespace {

Json misc(const std::string& name) {
  return read_fixture(fixtures_directory() / "misc" / (name + ".json"));
}

TEST(Profiles, AnthropicModelsAreAsRecorded) {
  auto table = misc("profiles");
  Tally tally("misc/profiles");
  for (const auto& [id, recorded] : table.at("profiles").items()) {
    auto parts = split_model_id(id);
    if (parts.provider != "anthropic") {
      tally.later();
      continue;
    }
    auto profile = profile_for(*parts.provider, parts.name);
    std::string wrong;
    for (const auto& [key, value] : recorded.items()) {
      if (!json_equal(profile.value(key), value)) wrong += " " + key;
    }
    for (const auto& [key, value] : table.at("defaults").items()) {
      if (!recorded.contains(key) && !json_equal(profile.value(key), value)) wrong += " " + key;
    }
    tally.count(wrong.empty());
    EXPECT_TRUE(wrong.empty()) << id << ":" << wrong;
  }
}

TEST(Profiles, DatedNamesAreTheirFamilys) {
  EXPECT_EQ(profile_for("anthropic", "claude-sonnet-4-5-20250929").value("anthropic_max_output_tokens"),
            64000);
  EXPECT_TRUE(profile_for("anthropic", "claude-sonnet-4-20250514")
                  .flag("anthropic_rejects_max_tokens_beyond_context_window"));
}

TEST(ModelIds, ResolveOrAreRefusedAsRecorded) {
  auto table = misc("model_ids");
  Tally tally("misc/model_ids");
  for (const auto& [id, parts] : table.at("split").items()) {
    auto split = split_model_id(id);
    EXPECT_EQ(split.provider ? Json(*split.provider) : Json(nullptr), parts[0]) << id;
    EXPECT_EQ(split.name, parts[1].get<std::string>());
  }
  for (const auto& row : table.at("rows")) {
    auto id = row.at("id").get<std::string>();
    bool set = row.at("env_set");
    auto lookup = [&](const std::string& name) -> std::optional<std::string> {
      if (!set || !table.at("env").contains(name)) return std::nullopt;
      return table["env"][name].get<std::string>();
    };
    auto provider = split_model_id(id).provider.value_or("");
    bool later = provider == "openai" || provider == "openai-chat" || provider == "openai-responses" ||
                 provider == "google" || provider == "ollama" || provider == "vllm";
    try {
      auto model = make_model(id, lookup);
      EXPECT_FALSE(row.contains("error")) << id;
      EXPECT_EQ(model->model_name(), row.value("model_name", std::string())) << id;
      EXPECT_EQ(model->provider_name(), row.value("system", std::string())) << id;
      tally.count(true);
    } catch (const UserError& error) {
      if (later) {
        EXPECT_NE(std::string(error.what()).find("later release"), std::string::npos) << error.what();
        tally.later();
        continue;
      }
      EXPECT_EQ(error.what(), row.value("message", std::string())) << id;
      tally.count(error.what() == row.value("message", std::string()));
    }
  }
}

TEST(ModelIds, BaseUrlComesFromTheEnvironment) {
  auto lookup = [](const std::string& name) -> std::optional<std::string> {
    if (name == "ANTHROPIC_API_KEY") return "k";
    if (name == "ANTHROPIC_BASE_URL") return "http://127.0.0.1:1/";
    return std::nullopt;
  };
  EXPECT_EQ(make_model("anthropic:claude-sonnet-4-5", lookup)->model_name(), "claude-sonnet-4-5");
}

TEST(SchemaTransform, GivesAnthropicWhatWasRecorded) {
  Tally tally("misc/schema_transforms");
  for (const auto& row : misc("schema_transforms").at("cases")) {
    for (const auto& result : row.at("results")) {
      if (!result.at("for").get<std::string>().starts_with("anthropic:")) {
        tally.later();
        continue;
      }
      bool strict = result.at("strict_requested") == true;
      auto transform = [&] {
        return strict ? anthropic_strict_schema(row.at("schema")) : without_titles(row.at("schema"));
      };
      bool same = false;
      if (result.contains("error")) {
        try {
          transform();
        } catch (const UserError& error) {
          same = error.what() == result.at("message").get<std::string>();
        }
      } else {
        same = json_equal(transform(), result.at("schema"));
      }
      tally.count(same);
      EXPECT_TRUE(same) << row.at("name") << (strict ? " strict" : "");
    }
  }
}

TEST(SchemaTransform, RefusesEndlessNesting) {
  Json schema{{"type", "object"}};
  for (int i = 0; i < 300; ++i) schema = Json{{"type", "array"}, {"items", std::move(schema)}};
  EXPECT_THROW(without_titles(schema), UserError);
  EXPECT_THROW(anthropic_strict_schema(schema), UserError);
}

ModelRequestParameters parameters_for(const std::string& tools) {
  ModelRequestParameters out;
  bool functions = tools.find("function") != std::string::npos;
  bool output = tools.find("output") != std::string::npos;
  if (functions) out.function_tools = {{.name = "a"}, {.name = "b"}};
  if (output) out.output_tools = {{.name = "final_result", .kind = ToolKind::output}};
  out.allow_text_output = tools.find("no text") == std::string::npos && tools != "output tool only";
  return out;
}

Json choice_as_recorded(const ResolvedToolChoice& choice) {
  const char* mode = choice.mode == ResolvedToolChoice::Mode::automatic ? "auto"
                     : choice.mode == ResolvedToolChoice::Mode::none    ? "none"
                                                                        : "required";
  if (choice.names.empty()) return mode;
  auto names = choice.names;
  std::sort(names.begin(), names.end());
  return {{"mode", mode}, {"names", names}};
}

TEST(ToolChoice, ResolvesAsRecorded) {
  Tally tally("misc/tool_choice");
  for (const auto& row : misc("tool_choice").at("cases")) {
    auto setting = row.at("tool_choice");
    if (setting.is_object()) setting = Json{{"function_tools", setting.at("ToolOrOutput")}};
    Json ours;
    std::string message;
    try {
      ours = choice_as_recorded(resolve_tool_choice(setting, parameters_for(row.at("tools"))));
    } catch (const UserError& error) {
      ours = "UserError";
      message = error.what();
    }
    auto recorded = row.contains("error") ? row["error"] : row.at("resolved");
    bool same = json_equal(ours, recorded);
    auto beginning = row.value("message", std::string());
    auto hole = beginning.find("<names>");
    same = same && message.starts_with(beginning.substr(0, hole));
    tally.count(same);
    EXPECT_TRUE(same) << dump_json(row) << " ours: " << dump_json(ours) << " " << message;
  }
}

TEST(ErrorCategories, FollowTheStatus) {
  auto table = misc("error_categories");
  auto class_of = [](int status, const std::string& text) -> Json {
    try {
      throw_http_error(category_of_status(status, text), {.model_name = "m"}, status, {});
    } catch (const ModelHTTPError& error) {
      auto names = class_names(error);
      for (const char* name :
           {"ModelAuthenticationError", "ModelNotFoundError", "ModelContextWindowExceededError",
            "ModelRequestRejectedError", "ModelQuotaExceededError", "ModelRateLimitError",
            "ModelOverloadedError", "ModelUnavailableError", "ModelServerError"}) {
        if (names.contains(name)) return name;
      }
      return nullptr;
    }
  };
  for (const auto& [status, name] : table.at("by_status").items()) {
    EXPECT_EQ(class_of(std::stoi(status), ""), name) << status;
  }
  EXPECT_EQ(class_of(503, "The engine is Overloaded"), table.at("503_overloaded_message"));
}

TEST(TestModelArgs, AreAsRecorded) {
  Tally tally("misc/test_model_args");
  for (const auto& row : misc("test_model_args").at("cases")) {
    auto ours = make_test_args(row.at("schema"), row.at("seed"));
    bool same = json_equal(ours, row.at("args"));
    tally.count(same);
    EXPECT_TRUE(same) << dump_json(row) << "\n ours: " << dump_json(ours);
  }
}

TEST(TestModelArgs, RefuseSchemasWithoutEnd) {
  auto endless = parse_json(
      R"({"$ref": "#/$defs/A", "$defs": {"A": {"type": "object", "required": ["a"], "properties": {"a": {"$ref": "#/$defs/A"}}}}})");
  EXPECT_THROW(make_test_args(*endless, 0), UserError);
  EXPECT_THROW(make_test_args(Json{{"$ref", "#/$defs/None"}}, 0), UserError);
  EXPECT_THROW(make_test_args(Json{{"type", "string"}, {"minLength", 1e15}}, 0), UserError);
}

TEST(TokenEstimate, IsAsRecorded) {
  for (const auto& row : misc("text_functions").at("token_estimate")) {
    EXPECT_EQ(estimate_tokens(row.at("text").get<std::string>()), row.at("tokens").get<std::int64_t>())
        << row.at("text");
  }
}

// Retries.

WallTime at_epoch_plus(int seconds) {
  return WallTime(std::chrono::seconds(seconds));
}

TEST(Retry, DecidesByHeaderThenByStatus) {
  for (int status : {408, 409, 429, 500, 503, 529}) EXPECT_TRUE(should_retry({.status = status})) << status;
  for (int status : {301, 400, 401, 403, 404, 413, 422})
    EXPECT_FALSE(should_retry({.status = status})) << status;
  EXPECT_FALSE(should_retry({.status = 500, .headers = {{"x-should-retry", "false"}}}));
  EXPECT_TRUE(should_retry({.status = 400, .headers = {{"x-should-retry", "true"}}}));
}

TEST(Retry, WaitsLongerEachTimeAndNeverOverTheCap) {
  using std::chrono::milliseconds;
  auto now = at_epoch_plus(0);
  EXPECT_EQ(retry_delay(0, {}, now, 0), milliseconds(500));
  EXPECT_EQ(retry_delay(0, {}, now, 1), milliseconds(375));
  EXPECT_EQ(retry_delay(3, {}, now, 0), milliseconds(4000));
  EXPECT_EQ(retry_delay(50, {}, now, 0), milliseconds(8000));
  EXPECT_EQ(retry_delay(0, {{"retry-after", "0"}}, now, 0), milliseconds(500));
  EXPECT_EQ(retry_delay(0, {{"retry-after", "-1"}}, now, 0), milliseconds(500));
  EXPECT_EQ(retry_delay(0, {{"retry-after", "1000000000"}}, now, 0), std::chrono::seconds(300));
}

}  // namespace
}  // namespace holt::test
