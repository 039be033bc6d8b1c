// Runs the agents that the recorded histories were made with, and compares what comes out.
#include "support/fixtures.hpp"

#include "agent/scripted.hpp"
#include "holt/agent/agent.hpp"
#include "holt/agent/local_workspace.hpp"
#include "holt/base/encoding.hpp"

#include <map>
#include <set>

#include <gtest/gtest.h>

namespace holt::test {
namespace {

struct City {
  std::string name;
  int population = 0;
};
BOOST_DESCRIBE_STRUCT(City, (), (name, population))
void describe(Schema<City>& schema) {
  schema.text("A city.");
  schema.field(&City::population).at_least(0);
}

struct Country {
  std::string code;
};
BOOST_DESCRIBE_STRUCT(Country, (), (code))

struct Point {
  int x = 0;
  double y = 0.5;
  std::optional<std::string> tag = std::nullopt;
};
BOOST_DESCRIBE_STRUCT(Point, (), (x, y, tag))
void describe(Schema<Point>& schema) {
  schema.field(&Point::y).default_value(0.5);
}

struct N {
  int n = 0;
};
BOOST_DESCRIBE_STRUCT(N, (), (n))
struct Query {
  std::string q;
};
BOOST_DESCRIBE_STRUCT(Query, (), (q))
struct Sum {
  int a = 0;
  int b = 0;
};
BOOST_DESCRIBE_STRUCT(Sum, (), (a, b))
struct CityName {
  std::string city;
};
BOOST_DESCRIBE_STRUCT(CityName, (), (city))
struct Make {
  Point p;
  std::vector<int> n;
  std::string mode = "a";
};
BOOST_DESCRIBE_STRUCT(Make, (), (p, n, mode))
void describe(Schema<Make>& schema) {
  schema.field(&Make::mode).default_value("a").one_of({"a", "b"});
}
struct ManyArguments {
  int a = 0;
  std::string b;
  std::vector<int> c;
  std::map<std::string, double> d;
  bool e = false;
};
BOOST_DESCRIBE_STRUCT(ManyArguments, (), (a, b, c, d, e))
void describe(Schema<ManyArguments>& schema) {
  schema.field(&ManyArguments::e).default_value(false);
}
struct PointAndChoice {
  Point p;
  std::string q;
};
BOOST_DESCRIBE_STRUCT(PointAndChoice, (), (p, q))
void describe(Schema<PointAndChoice>& schema) {
  schema.field(&PointAndChoice::q).one_of({"u", "v"});
}

/// How a fixture's last run ended.
struct Ended {
  MessageHistory messages;
  std::optional<std::size_t> first_new;
  std::optional<RunUsage> usage;
  Json output = nullptr;
  std::optional<std::string> raised;
};

template <class T>
Ended ended(const RunResult<T>& result) {
  return {
      result.all_messages(), result.first_new_message(), result.usage(), encode_json(result.output()), {}};
}

Ended failed(const Error& error, const std::string& name) {
  auto record = run_record(error);
  return {record->all_messages(), std::nullopt, std::nullopt, nullptr, name + ": " + error.what()};
}

Json tool_args(const char* key, Json value) {
  Json args = Json::object();
  args[key] = std::move(value);
  return args;
}

Json city_args(const char* name, int population) {
  Json args = Json::object();
  args["name"] = name;
  args["population"] = population;
  return args;
}

const Json k_empty = Json::object();

Ended tool_model_retry() {
  Agent agent(
      script({call("find", tool_args("q", "a"), "c1"), call("find", tool_args("q", "b"), "c2"), "found"}),
      {.tools = {tool("find", "", [](Query query) -> std::string {
         if (query.q == "a") throw ModelRetry("No such thing, try b.");
         return "b!";
       })}});
  return ended(agent.run_sync("find"));
}

Ended tool_parallel_order() {
  Agent agent(script({Parts{call("wait", tool_args("n", 3), "c1"), call("wait", tool_args("n", 1), "c2"),
                            call("wait", tool_args("n", 2), "c3")},
                      "done"}),
              {.tools = {tool("wait", "", [](N args) -> Task<std::string> {
                 co_await sleep_for(std::chrono::milliseconds(args.n * 20));
                 co_return "waited " + std::to_string(args.n);
               })}});
  return ended(agent.run_sync("wait"));
}

Ended tool_result_kinds() {
  Json nested_list = Json::array({encode_json(Point{.x = 3})});
  Json nested = Json::object();
  nested["k"]["p"] = encode_json(Point{.x = 2, .tag = "t"});
  nested["k"]["l"] = nested_list;
  Json object = Json::object();
  object["b"] = 1;
  object["a"] = Json::array({true});
  const std::vector<std::pair<std::string, Json>> values = {
      {"r_null", nullptr},
      {"r_bool", true},
      {"r_int", 7},
      {"r_float", 1.0},
      {"r_str", "s"},
      {"r_list", Json::array({1, "a", nullptr})},
      {"r_dict", object},
      {"r_model", encode_json(Point{.x = 1})},
      {"r_datetime", "2024-05-06T07:08:09Z"},
      {"r_uuid", "00000000-0000-4000-8000-000000000001"},
      {"r_decimal", "1.10"},
      {"r_bytes", base64_encode(std::string_view("\x00\xff", 2), Base64Alphabet::url_safe)},
      {"r_empty_list", Json::array()},
      {"r_nested", nested}};
  Parts calls;
  std::vector<Tool> tools;
  for (const auto& [name, value] : values) {
    calls.push_back(call(name, k_empty, "id_" + name));
    tools.push_back(tool(name, "", [value] { return value; }));
  }
  Agent agent(script({calls, "done"}), {.tools = tools});
  return ended(agent.run_sync("kinds"));
}

Ended tool_cancelled() {
  CancellationToken token;
  Agent agent(script({Parts{call("quick", k_empty, "c1"), call("slow", k_empty, "c2")}}),
              {.tools = {tool("quick", "", []() -> Task<std::string> { co_return "quick done"; }),
                         tool("slow", "", [token]() -> Task<std::string> {
                           co_await sleep_for(std::chrono::milliseconds(50));
                           token.cancel();
                           co_await sleep_for(std::chrono::seconds(5));
                           co_return "never";
                         })}});
  try {
    agent.run_sync("go", {.cancellation_token = token});
  } catch (const RunCancelled& e) {
    return failed(e, "RunCancelled");
  }
  return {};
}

Ended thinking_signature() {
  auto thinking = [](std::string content) {
    ThinkingPart part;
    part.content = std::move(content);
    return part;
  };
  ThinkingPart signed_part = thinking("I should add.");
  signed_part.id = "rs_1";
  signed_part.signature = "c2lnbmF0dXJl";
  signed_part.provider_name = "anthropic";
  ThinkingPart redacted = thinking("");
  redacted.id = "redacted_thinking";
  redacted.signature = "ZW5jcnlwdGVk";
  redacted.provider_name = "anthropic";
  ThinkingPart detailed = thinking("Now answer.");
  detailed.provider_details = tool_args("raw_content", Json::array({"x"}));
  TextPart five = text("5");
  five.id = "msg_1";
  five.provider_name = "openai";
  five.provider_details = tool_args("phase", "final");
  Json args = tool_args("a", 2);
  args["b"] = 3;
  Agent agent(script({Parts{signed_part, redacted, call("add", args, "c1")}, Parts{detailed, five}}),
              {.tools = {tool("add", "", [](Sum sum) { return sum.a + sum.b; })}});
  return ended(agent.run_sync("2+3?"));
}

Ended multi_run() {
  auto reply = [](const char* answer, int number) {
    ModelResponse response;
    response.parts = {text(answer)};
    response.usage.input_tokens = 10 + number;
    response.usage.output_tokens = 5;
    response.usage.cache_read_tokens = 4;
    response.usage.details["reasoning_tokens"] = 2;
    response.provider_name = "openai";
    response.provider_url = "https://api.openai.com/v1";
    response.provider_response_id = "resp_" + std::to_string(number);
    response.provider_details = tool_args("finish_reason", "stop");
    response.finish_reason = FinishReason::stop;
    return response;
  };
  Agent agent(script({reply("a", 1), reply("b", 2)}), {.metadata = tool_args("app", "demo")});
  auto first = agent.run_sync("one");
  auto second = agent.run_sync("two", {.message_history = first.all_messages()});
  EXPECT_TRUE(json_equal(second.metadata(), tool_args("app", "demo")));
  return ended(second);
}

Ended settings_delta() {
  const Json profile = Json::parse(R"({"supports_thinking": true, "supports_json_schema_output": true})");
  Json low = tool_args("thinking", "low");
  low["max_tokens"] = 5;
  auto first = Agent(script({"a"}, profile)).run_sync("one", {.model_settings = low});
  auto second = Agent(script({"b"}, profile))
                    .run_sync("two", {.message_history = first.all_messages(),
                                      .model_settings = tool_args("thinking", "high")});
  return ended(Agent(script({"c"}, profile)).run_sync("three", {.message_history = second.all_messages()}));
}

Ended usage_limit() {
  ModelResponse response = text_response("long");
  response.usage.input_tokens = 100;
  response.usage.output_tokens = 100;
  try {
    Agent(script({response})).run_sync("go", {.usage_limits = {.output_tokens_limit = 10}});
  } catch (const UsageLimitExceeded& e) {
    return failed(e, "UsageLimitExceeded");
  }
  return {};
}

Ended user_content_media() {
  const std::string png = *base64_decode(
      "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==");
  auto url = [](UrlKind kind, std::string address) {
    FileUrl item;
    item.kind = kind;
    item.url = std::move(address);
    return item;
  };
  FileUrl detailed = url(UrlKind::image, "https://example.com/b.jpg");
  detailed.force_download = ForceDownload::yes;
  detailed.vendor_metadata = tool_args("detail", "low");
  FileUrl typed = url(UrlKind::image, "https://example.com/noext");
  typed.media_type = "image/webp";
  typed.identifier = "img9";
  std::vector<UserContentItem> items = {
      "Look at these:",
      BinaryContent{.data = png, .media_type = "image/png"},
      BinaryContent{.data = "%PDF-1.4",
                    .media_type = "application/pdf",
                    .vendor_metadata = tool_args("k", 1),
                    .identifier = "doc1"},
      url(UrlKind::image, "https://example.com/a.png"),
      detailed,
      typed,
      url(UrlKind::audio, "https://example.com/a.mp3"),
      url(UrlKind::video, "https://youtu.be/abc"),
      url(UrlKind::document, "https://example.com/r.pdf"),
      UploadedFile{.file_id = "file-123", .provider_name = "openai", .media_type = "image/png"},
      TextContent{.content = "annotated", .metadata = tool_args("source", "clipboard")}};
  return ended(Agent(script({"I see."})).run_sync(items));
}

Ended system_prompts_two_runs() {
  Agent agent(script({"One.", "Two."}),
              {.system_prompt = {
                   "You are terse.", "Answer in English.", [] { return "The user is Ada."; },
                   SystemPrompt::dynamic("system_prompts_two_runs.<locals>.dyn", [](const RunContext& ctx) {
                     return "Step count " + std::to_string(ctx.messages().size()) + ".";
                   })}});
  auto first = agent.run_sync("first");
  return ended(agent.run_sync("second", {.message_history = first.all_messages()}));
}

Ended workspace_local() {
  TempDir directory;
  Agent agent(script({call("ls", k_empty, "c1"), "empty"}),
              {.capabilities = {LocalWorkspace(directory.path())},
               .tools = {tool("ls", "", [](RunContext& ctx) -> Task<std::string> {
                 auto entries = co_await ctx.workspace().list_dir(".");
                 co_return entries.empty() ? "[]" : "something";
               })}});
  auto result = agent.run_sync("what is here?");
  Ended end = ended(result);
  for (auto& message : end.messages)
    if (auto* response = std::get_if<ModelResponse>(&message); response && response->workspace_ref)
      if (response->workspace_ref->id == directory.path()) response->workspace_ref->id = "/home/user/project";
  return end;
}

/// The prompt and replies are those that the fixture shows: only what the agent adds is compared.
Ended replay(const Json& fixture, std::vector<Tool> tools) {
  auto recorded = messages_from_json(fixture["dump"].get<std::string>());
  std::vector<Reply> replies;
  for (const auto& message : recorded)
    if (const auto* response = std::get_if<ModelResponse>(&message)) replies.emplace_back(response->parts);
  const auto& prompt = std::get<UserPromptPart>(std::get<ModelRequest>(recorded.front()).parts.front());
  return ended(Agent(script(replies), {.tools = std::move(tools)}).run_sync(prompt.content));
}

using Case = std::function<Ended(const Json& fixture)>;

std::map<std::string, Case> cases() {
  std::map<std::string, Case> all;
  auto plain = [&](const char* name, std::vector<Tool> tools = {}) {
    all[name] = [tools](const Json& fixture) { return replay(fixture, tools); };
  };
  plain("text_simple");
  plain("empty_prompt");
  plain("cache_points");
  plain("native_parts");
  plain("tool_one", {tool("get_weather", "", [](CityName args) {
          Json sky = tool_args("city", args.city);
          sky["temp_c"] = 21.5;
          sky["sky"] = "sunny";
          return sky;
        })});
  plain("tool_unknown", {tool("beta", "", [] { return "b"; }), tool("alpha", "", [] { return "a"; })});
  all["tool_model_retry"] = [](const Json&) { return tool_model_retry(); };
  all["tool_parallel_order"] = [](const Json&) { return tool_parallel_order(); };
  all["tool_result_kinds"] = [](const Json&) { return tool_result_kinds(); };
  all["tool_cancelled"] = [](const Json&) { return tool_cancelled(); };
  all["thinking_signature"] = [](const Json&) { return thinking_signature(); };
  all["multi_run"] = [](const Json&) { return multi_run(); };
  all["settings_delta"] = [](const Json&) { return settings_delta(); };
  all["usage_limit"] = [](const Json&) { return usage_limit(); };
  all["user_content_media"] = [](const Json&) { return user_content_media(); };
  all["system_prompts_two_runs"] = [](const Json&) { return system_prompts_two_runs(); };
  all["workspace_local"] = [](const Json&) { return workspace_local(); };
  all["unicode"] = [](const Json& fixture) {
    const Json reversed = fixture["messages"][2]["parts"][0]["content"];
    Json schema = Json::parse(R"({"type": "object", "properties": {"s": {"type": "string"},
        "ключ": {"type": "integer"}}, "required": ["s", "ключ"], "additionalProperties": false})");
    ToolFunction echo = [reversed](RunContext&, Json) -> Task<ToolValue> {
      ToolReturn value;
      value.return_value = reversed;
      co_return value;
    };
    return replay(fixture, {Tool::from_schema("echo", "", schema, echo)});
  };
  all["tool_validation_retry"] = [](const Json&) {
    Json good = Json::parse(R"({"p": {"x": 1}, "n": [1]})");
    Agent agent(script({call("mk", R"({"p": {"x": "abc"}, "n": [1, "z"]})", "c1"), call("mk", "{", "c2"),
                        call("mk", good, "c3"), "made"}),
                {.tools = {tool("mk", "", [](Make) { return "ok"; })}, .retries = 2});
    return ended(agent.run_sync("make"));
  };
  all["tool_failed"] = [](const Json&) {
    Agent agent(script({Parts{call("boom", k_empty, "c1"), call("fine", k_empty, "c2")},
                        call("boom", k_empty, "c3"), "gave up"}),
                {.tools = {tool("boom", "", []() -> std::string { throw ToolFailed("disk is full"); }),
                           tool("fine", "", [] { return "fine"; })},
                 .retries = 0});
    return ended(agent.run_sync("go"));
  };
  all["tool_timeout"] = [](const Json&) {
    Agent agent(script({call("slow", k_empty, "c1"), "too slow"}),
                {.tools = {tool("slow", "",
                                []() -> Task<std::string> {
                                  co_await sleep_for(std::chrono::seconds(5));
                                  co_return "x";
                                })},
                 .tool_timeout = std::chrono::milliseconds(50)});
    return ended(agent.run_sync("go"));
  };
  all["instructions_static_dynamic"] = [](const Json&) {
    Agent agent(script({call("now", k_empty, "call_1"), "It is noon."}),
                {.instructions = {"Be brief.",
                                  [](const RunContext& ctx) {
                                    return "Run step " + std::to_string(ctx.run_step()) + ".";
                                  }},
                 .tools = {tool("now", "", [] { return "12:00"; })}});
    return ended(agent.run_sync("What time is it?"));
  };
  all["instructions_only"] = [](const Json&) {
    return ended(Agent(script({"ok"}), {.instructions = "Say ok."}).run_sync(RunOptions()));
  };
  all["resume_request"] = [](const Json&) {
    ModelRequest request;
    UserPromptPart question;
    question.content = "question";
    request.parts.emplace_back(question);
    return ended(Agent(script({"answer"})).run_sync({.message_history = {request}}));
  };
  all["empty_then_text"] = [](const Json&) {
    Agent agent(script({Parts{}, Parts{text("")}, "here"}), {.retries = 3});
    return ended(agent.run_sync("say"));
  };
  all["empty_history"] = [](const Json&) { return Ended{}; };
  all["output_tool"] = [](const Json&) {
    Agent agent(script({call("final_result", city_args("Oslo", 700000), "c1")}));
    return ended(agent.run_sync<City>("city?"));
  };
  all["output_tool_retry"] = [](const Json&) {
    Agent agent(script({call("final_result", city_args("Oslo", -1), "c1"),
                        call("final_result", city_args("Oslo", 1), "c2")}));
    return ended(agent.run_sync<City>("city?"));
  };
  all["output_union"] = [](const Json&) {
    Agent agent(script({call("final_result_Country", tool_args("code", "NO"), "c1")}));
    return ended(agent.run_sync<std::variant<City, Country>>("country?"));
  };
  all["output_tool_text_first"] = [](const Json&) {
    ThinkingPart thinking;
    thinking.content = "hm";
    Agent agent(script({"Oslo", Parts{thinking}, call("final_result", city_args("Oslo", 1), "c1")}),
                {.retries = Retries(1, 3)});
    return ended(agent.run_sync<City>("city?"));
  };
  all["output_native"] = [](const Json&) {
    Agent agent(script({R"({"name": "Oslo"})", R"({"name": "Oslo", "population": 5})"}));
    return ended(agent.run_sync<NativeOutput<City>>("city?"));
  };
  auto number = tool("f", "", [](N args) { return args.n; });
  all["end_graceful"] = [number](const Json&) {
    Agent agent(
        script({Parts{call("f", tool_args("n", 1), "c1"), call("final_result", city_args("A", 1), "c2"),
                      call("f", tool_args("n", 2), "c3"), call("final_result", city_args("B", 1), "c4")}}),
        {.tools = {number}});
    return ended(agent.run_sync<City>("go"));
  };
  all["end_early"] = [number](const Json&) {
    Agent agent(
        script({Parts{call("f", tool_args("n", 1), "c1"), call("final_result", city_args("A", 1), "c2"),
                      call("final_result", city_args("B", 1), "c4")}}),
        {.tools = {number}, .end_strategy = EndStrategy::early});
    return ended(agent.run_sync<City>("go"));
  };
  all["end_graceful_retry_wins"] = [](const Json&) {
    Agent agent(
        script({Parts{call("f", tool_args("n", 1), "c1"), call("final_result", city_args("A", 1), "c2")},
                call("final_result", city_args("B", 1), "c3")}),
        {.tools = {tool("f", "", [](N) -> int { throw ModelRetry("again please"); })}});
    return ended(agent.run_sync<City>("go"));
  };
  all["test_model_plain"] = [](const Json&) { return ended(Agent("test").run_sync("test")); };
  all["test_model_tools"] = [](const Json&) {
    Agent agent("test", {.tools = {tool("f", "", [](ManyArguments) { return "fa"; }),
                                   tool("g", "", [](PointAndChoice) { return tool_args("ok", true); })}});
    return ended(agent.run_sync("test"));
  };
  return all;
}

/// Deferred calls, queued messages and run_stream.
const std::set<std::string> k_later = {"tool_approval", "deferred_resumed", "enqueue", "streamed"};

/// Times become one word, generated ids their order of appearance.
class Normaliser {
 public:
  Json operator()(Json value) {
    normalise(value, "");
    return value;
  }

 private:
  void normalise(Json& value, const std::string& key) {
    if (value.is_string() && key == "timestamp")
      value = "<time>";
    else if (value.is_string() &&
             (key == "run_id" || key == "conversation_id" || is_generated_call(value, key)))
      value = "<id " + std::to_string(ids_.try_emplace(value, ids_.size()).first->second) + ">";
    else if (value.is_object())
      for (auto& [name, item] : value.items()) normalise(item, name);
    else if (value.is_array())
      for (auto& item : value) normalise(item, "");
  }
  static bool is_generated_call(const Json& value, const std::string& key) {
    return key == "tool_call_id" && value.get_ref<const std::string&>().size() == 39 &&
           value.get_ref<const std::string&>().starts_with("pyd_ai_");
  }
  std::map<std::string, std::size_t> ids_;
};

Json usage_json(const RunUsage& usage) {
  ModelResponse response;
  response.usage = usage;
  Json json = message_to_json_value(ModelMessage(response))["usage"];
  json["requests"] = usage.requests;
  json["tool_calls"] = usage.tool_calls;
  return json;
}

bool matches(const Json& fixture, const Ended& end) {
  Json messages = Normaliser()(messages_to_json_value(end.messages));
  Json expected = Normaliser()(fixture["messages"]);
  EXPECT_EQ(dump_json(messages, {.indent = 1}), dump_json(expected, {.indent = 1}));
  bool same = dump_json(messages) == dump_json(expected);
  auto check = [&](const char* what, const Json& recorded, const Json& ours) {
    EXPECT_TRUE(json_equal(recorded, ours))
        << what << ": " << dump_json(ours) << ", not " << dump_json(recorded);
    same = same && json_equal(recorded, ours);
  };
  if (fixture.contains("raised")) check("raised", fixture["raised"], end.raised ? Json(*end.raised) : Json());
  if (fixture.contains("output")) check("output", fixture["output"], end.output);
  if (!fixture["first_new_message"].is_null() && end.first_new)
    check("first_new_message", fixture["first_new_message"], *end.first_new);
  if (fixture.contains("run_usage") && end.usage)
    check("run_usage", fixture["run_usage"], usage_json(*end.usage));
  return same;
}

TEST(AgentFixtures, RecordedRunsHappenAgain) {
  Tally tally("agent runs");
  const auto all = cases();
  for (const auto& path : fixture_files("messages")) {
    const std::string name = path.stem();
    SCOPED_TRACE(name);
    auto found = all.find(name);
    if (found == all.end()) {
      EXPECT_TRUE(k_later.contains(name) || !std::getenv("HOLT_FIXTURES")) << "no agent for this fixture";
      tally.later();
      continue;
    }
    const Json fixture = read_fixture(path);
    bool passed = false;
    try {
      passed = matches(fixture, found->second(fixture));
    } catch (const std::exception& e) {
      ADD_FAILURE() << e.what();
    }
    tally.count(passed);
  }
  EXPECT_GE(tally.passed(), 35U);
}

}  // namespace
}  // namespace holt::test
