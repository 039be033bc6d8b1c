#include "holt/base/error.hpp"
#include "holt/messages/repair.hpp"
#include "support/fixtures.hpp"

#include <chrono>
#include <random>

#include <gtest/gtest.h>

namespace holt {
namespace {

using test::fixture_files;
using test::read_fixture;
using test::Tally;

/// Whether `actual` is `expected` with placeholders for what is made at reading.
bool matches(const Json& expected, const Json& actual) {
  if (expected == "<now>") return actual.is_string() && parse_timestamp(actual);
  if (expected == "<generated-tool-call-id>") {
    return actual.is_string() && actual.get<std::string>().starts_with("pyd_ai_") &&
           actual.get<std::string>().size() == 39;
  }
  if (expected.is_array() && actual.is_array()) {
    return std::ranges::equal(expected, actual, matches);
  }
  if (expected.is_object() && actual.is_object()) {
    if (expected.size() != actual.size()) return false;
    return std::ranges::all_of(expected.items(), [&](const auto& item) {
      return actual.contains(item.key()) && matches(item.value(), actual[item.key()]);
    });
  }
  return json_equal(expected, actual);
}

std::string refusal_of(const std::string& text) {
  try {
    return "accepted: " + messages_to_json(messages_from_json(text));
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::invalid_config);
    return error.what();
  }
}

TEST(History, RecordedHistoriesAreWrittenBackByteForByte) {
  Tally tally("histories written back");
  for (const auto& path : fixture_files("messages")) {
    Json fixture = read_fixture(path);
    if (!fixture.contains("dump")) continue;
    auto dump = fixture["dump"].get<std::string>();
    std::string again = messages_to_json(messages_from_json(dump));
    EXPECT_EQ(again, dump) << path;
    tally.count(again == dump);
    EXPECT_EQ(dump_json(messages_to_json_value(messages_from_json_value(*parse_json(dump)))), dump) << path;
  }
  EXPECT_GT(tally.passed(), 0U);
}

TEST(History, OddAndOldInputIsAcceptedRefusedAndWrittenAsRecorded) {
  Tally tally("odd and old input");
  for (const auto& path : fixture_files("messages/read")) {
    Json fixture = read_fixture(path);
    bool passed = false;
    try {
      Json written = messages_to_json_value(messages_from_json_value(fixture["input"]));
      passed = fixture["accepted"] == true && matches(fixture["dump"], written);
      EXPECT_TRUE(passed) << path << ": " << dump_json(written);
    } catch (const Error& error) {
      passed = fixture["accepted"] == false && error.code() == ErrorCode::invalid_config;
      EXPECT_TRUE(passed) << path << ": " << error.what();
    }
    tally.count(passed);
  }
  EXPECT_GT(tally.passed(), 0U);
}

TEST(History, RefusalsNameThePlace) {
  EXPECT_EQ(refusal_of("{}"), "Expected an array");
  EXPECT_EQ(refusal_of("[1]"), "[0]: Expected an object");
  EXPECT_EQ(refusal_of("[{}]"), "[0].kind: Required, but missing");
  EXPECT_EQ(
      refusal_of(
          R"([{"kind":"request","parts":[]},{"kind":"request","parts":[{"part_kind":"text","content":""}]}])"),
      "[1].parts[0].part_kind: no kind of request part: text");
  EXPECT_EQ(refusal_of(R"([{"kind":"response","parts":[],"finish_reason":"because"}])"),
            "[0].finish_reason: Expected 'stop', 'length', 'content_filter', 'tool_call' or 'error'");
  EXPECT_EQ(refusal_of(R"([{"kind":"response","parts":[],"workspace_ref":{"provider":"smol"}}])"),
            "[0].workspace_ref.id: Required, but missing");
  EXPECT_EQ(
      refusal_of(
          R"([{"kind":"request","parts":[{"part_kind":"user-prompt","content":["a",{"kind":"binary","data":"n@t","media_type":"x"}]}]}])"),
      "[0].parts[0].content[1].data: Not base64");
  EXPECT_EQ(refusal_of(R"([{"kind":"response","parts":[],"usage":{"details":{"a":"x"}}}])"),
            "[0].usage.details.a: Expected an integer");
  EXPECT_EQ(refusal_of("[1,]"), "Not JSON: comma with nothing behind it (line 1, column 4)");
}

struct Row {
  const char* name;
  const char* input;
  const char* written;  ///< null: refused
};
void PrintTo(const Row& row, std::ostream* out) {
  *out << row.name;
}

/// A request part, read and written; null when it is refused.
Json rewritten_part(const std::string& kind, const std::string& part) {
  try {
    auto history = messages_from_json(R"([{"kind":")" + kind + R"(","parts":[)" + part + "]}]");
    return messages_to_json_value(history)[0]["parts"][0];
  } catch (const Error&) {
    return nullptr;
  }
}

class RequestPartRow : public testing::TestWithParam<Row> {};
TEST_P(RequestPartRow, IsReadAsTheReferenceReadsIt) {
  Json written = rewritten_part("request", GetParam().input);
  EXPECT_EQ(dump_json(written), GetParam().written ? GetParam().written : "null");
}
INSTANTIATE_TEST_SUITE_P(
    All, RequestPartRow,
    testing::Values(
        Row{"instruction_delta",
            R"({"part_kind":"instruction-delta","id":"toolset:a:b","content":null,"x":1})",
            R"({"id":"toolset:a:b","content":null,"base_hash":null,"part_kind":"instruction-delta"})"},
        Row{"instruction_delta_foreign_id", R"({"part_kind":"instruction-delta","id":"else","content":"c"})",
            R"({"id":null,"content":"c","base_hash":null,"part_kind":"instruction-delta"})"},
        Row{"instruction_delta_without_id", R"({"part_kind":"instruction-delta","content":"c"})", nullptr},
        Row{"instruction_baseline",
            R"({"part_kind":"instruction-baseline","instructions":[{"part_kind":"instruction-digest","id":"agent","dynamic":true,"content_hash":"h"}]})",
            R"({"instructions":[{"id":"agent","dynamic":true,"content_hash":"h","part_kind":"instruction-digest"}],"part_kind":"instruction-baseline"})"},
        Row{"settings_delta",
            R"({"part_kind":"model-settings-delta","settings":{"thinking":"low","top_p":1},"top_level":"true"})",
            R"({"settings":{"thinking":"low"},"top_level":true,"part_kind":"model-settings-delta"})"},
        Row{"compaction", R"({"part_kind":"compaction","content":"c"})",
            R"({"content":"c","id":null,"provider_name":null,"provider_details":null,"metadata":null,"part_kind":"compaction"})"},
        Row{"compaction_of_a_provider",
            R"({"part_kind":"compaction","content":"c","provider_name":"openai"})", nullptr},
        Row{"speech", R"({"part_kind":"speech","speaker":"user","transcript":"t","interrupted_at_ms":"7"})",
            R"({"speaker":"user","transcript":"t","audio":null,"interrupted_at_ms":7,"id":null,"provider_name":null,"provider_details":null,"part_kind":"speech"})"},
        Row{"speech_of_the_assistant", R"({"part_kind":"speech","speaker":"assistant"})", nullptr},
        Row{"tool_search_without_tools",
            R"({"part_kind":"tool-return","tool_name":"search_tools","tool_kind":"tool-search","content":{}})",
            nullptr},
        Row{"tool_search_that_failed",
            R"({"part_kind":"tool-return","tool_name":"x","tool_kind":"tool-search","content":1,"outcome":"failed","tool_call_id":"c","timestamp":"2024-01-01"})",
            R"({"tool_name":"x","content":1,"tool_call_id":"c","tool_kind":"tool-search","metadata":null,"timestamp":"2024-01-01T00:00:00","outcome":"failed","retry":null,"part_kind":"tool-return"})"},
        Row{"tool_return_without_content", R"({"part_kind":"tool-return","tool_name":"x"})", nullptr},
        Row{"feedback_without_retry", R"({"part_kind":"retry-feedback","content":"c"})", nullptr},
        Row{"feedback_with_a_tool_cause",
            R"({"part_kind":"retry-feedback","content":"c","retry":{"cause":"unknown_tool"}})", nullptr},
        Row{"unknown_kind_of_content", R"({"part_kind":"user-prompt","content":[{"kind":"hologram"}]})",
            nullptr},
        Row{"system_prompt",
            R"({"part_kind":"system-prompt","content":"c","timestamp":1704067200,"scope":"request"})",
            R"({"content":"c","timestamp":"2024-01-01T00:00:00Z","dynamic_ref":null,"scope":"request","metadata":null,"part_kind":"system-prompt"})"},
        Row{"user_content",
            R"({"part_kind":"user-prompt","timestamp":"2024-01-01","content":[{"kind":"text-content","content":"a"},{"kind":"structured-content","content":"s","value":[1]},{"kind":"cache-point"},{"kind":"uploaded-file","file_id":"f.pdf","provider_name":"google"},{"kind":"image-url","url":"https://a/b.PNG?c.gif","force_download":"allow-local"}]})",
            R"({"content":[{"content":"a","metadata":null,"kind":"text-content"},{"content":"s","metadata":null,"kind":"structured-content","value":[1],"tag":null,"description":null},{"kind":"cache-point","ttl":"5m"},{"file_id":"f.pdf","provider_name":"google","vendor_metadata":null,"kind":"uploaded-file","media_type":"application/pdf","identifier":"a407df"},{"url":"https://a/b.PNG?c.gif","force_download":"allow-local","vendor_metadata":null,"kind":"image-url","media_type":"image/png","identifier":"87d501"}],"timestamp":"2024-01-01T00:00:00","part_kind":"user-prompt"})"}),
    [](const auto& row) { return row.param.name; });

class ResponsePartRow : public testing::TestWithParam<Row> {};
TEST_P(ResponsePartRow, IsReadAsTheReferenceReadsIt) {
  Json written = rewritten_part("response", GetParam().input);
  EXPECT_EQ(dump_json(written), GetParam().written ? GetParam().written : "null");
}
INSTANTIATE_TEST_SUITE_P(
    All, ResponsePartRow,
    testing::Values(
        Row{"cut_arguments", R"({"part_kind":"tool-call","tool_name":"f","args":"{\"a","tool_call_id":"c"})",
            R"({"tool_name":"f","args":"{\"a","tool_call_id":"c","tool_kind":null,"id":null,"provider_name":null,"provider_details":null,"part_kind":"tool-call"})"},
        Row{"list_arguments", R"({"part_kind":"tool-call","tool_name":"f","args":[]})", nullptr},
        Row{"citation_without_span",
            R"({"part_kind":"text","content":"c","citations":[{"sources":[],"anchor":{"start":3,"end":3,"kind":"content"}}]})",
            nullptr},
        Row{"document_source",
            R"({"part_kind":"text","content":"c","citations":[{"sources":[{"kind":"document","title":"t"}]}]})",
            R"({"content":"c","id":null,"provider_name":null,"provider_details":null,"citations":[{"sources":[{"document_id":null,"title":"t","excerpts":[],"kind":"document"}],"anchor":null}],"part_kind":"text"})"},
        Row{"document_source_of_nothing",
            R"({"part_kind":"text","content":"c","citations":[{"sources":[{"kind":"document"}]}]})", nullptr},
        Row{"file_of_text", R"({"part_kind":"file","content":"c"})", nullptr},
        Row{"request_part", R"({"part_kind":"user-prompt","content":"c"})", nullptr}),
    [](const auto& row) { return row.param.name; });

TEST(History, FailedAttemptsAndExtraUsageAreKept) {
  std::string text =
      R"([{"kind":"response","parts":[],"timestamp":"2024-01-01","usage":{"zz":[1],"input_tokens":"7","aa":null},)"
      R"("failed_attempts":[{"usage":null,"outcome":"rejected","model_name":"m","timestamp":"2024-01-01T00:00Z","duration":1.5}]}])";
  Json message = messages_to_json_value(messages_from_json(text))[0];
  EXPECT_EQ(dump_json(message["failed_attempts"]),
            R"([{"model_name":"m","provider_name":null,"outcome":"rejected","error":null,)"
            R"("timestamp":"2024-01-01T00:00:00Z","duration":"PT1.5S","usage":null}])");
  std::string usage = dump_json(message["usage"]);
  EXPECT_TRUE(usage.starts_with(R"({"input_tokens":7,"cache_write_tokens":0)")) << usage;
  EXPECT_TRUE(usage.ends_with(R"("details":{},"cost":null,"zz":[1],"aa":null})")) << usage;
}

TEST(History, ResponseTellsItsTextAndCalls) {
  ModelResponse response;
  response.parts = {TextPart{.content = "a"}, ToolCallPart{.tool_name = "f", .tool_call_id = "1"},
                    BuiltinToolCallPart{{.tool_name = "web"}}, TextPart{.content = "b"}};
  EXPECT_EQ(response.text(), "ab");
  ASSERT_EQ(response.tool_calls().size(), 1U);
  EXPECT_EQ(response.tool_calls()[0].tool_name, "f");
}

TEST(History, GeneratedCallIdsAreUuidsThatDiffer) {
  std::string a = generate_tool_call_id();
  EXPECT_EQ(a.size(), 39U);
  EXPECT_EQ(a[7 + 12], '4');
  EXPECT_NE(a, generate_tool_call_id());
}

TEST(History, DamagedHistoriesAreReadOrRefusedButNeverMore) {
  std::mt19937 random(3);
  for (const auto& path : fixture_files("messages")) {
    Json fixture = read_fixture(path);
    if (!fixture.contains("dump")) continue;
    const auto dump = fixture["dump"].get<std::string>();
    for (int round = 0; round < 60; ++round) {
      std::string damaged = dump;
      for (int n = 0; n < 3 && !damaged.empty(); ++n) {
        std::size_t at = random() % damaged.size();
        if (random() % 2 == 0)
          damaged[at] = "0\"{}[],:ntx"[random() % 11];
        else
          damaged.erase(at, random() % 20);
      }
      try {
        auto history = messages_from_json(damaged);
        std::string once = messages_to_json(history);
        EXPECT_EQ(messages_to_json(messages_from_json(once)), once);
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::invalid_config);
      }
    }
  }
}

TEST(History, AThousandMessagesAreCopiedRepairedWrittenAndReadAlike) {
  MessageHistory history;
  for (int i = 0; i < 500; ++i) {
    ModelResponse response;
    response.parts = {TextPart{.content = std::string(300, 'y')},
                      ToolCallPart{.tool_name = "shell", .args = {{"command", "ls"}}, .tool_call_id = "c"}};
    history.push_back(response);
    history.push_back(
        ModelRequest{.parts = {ToolReturnPart{
                         .tool_name = "shell", .content = std::string(1000, 'x'), .tool_call_id = "c"}}});
  }
  std::string text = messages_to_json(history);
  auto start = std::chrono::steady_clock::now();
  auto copy = history;
  auto copied = std::chrono::steady_clock::now();
  copy = repair_history(std::move(copy), RepairLastResponse::keep).messages;
  auto repaired = std::chrono::steady_clock::now();
  EXPECT_EQ(messages_to_json(copy), text);
  auto written = std::chrono::steady_clock::now();
  auto read = messages_from_json(text);
  auto end = std::chrono::steady_clock::now();
  EXPECT_EQ(read.size(), 1000U);
  auto ms = [](auto d) { return std::chrono::duration<double, std::milli>(d).count(); };
  std::cout << "1,000 messages: copied in " << ms(copied - start) << " ms, repaired in "
            << ms(repaired - copied) << " ms, written in " << ms(written - repaired) << " ms, read in "
            << ms(end - written) << " ms\n";
}

}  // namespace
}  // namespace holt
