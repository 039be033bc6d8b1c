#include "holt/messages/repair.hpp"

#include "support/fixtures.hpp"

#include <chrono>

#include <gtest/gtest.h>

namespace holt {
namespace {

RepairedHistory repaired(const Json& input, RepairLastResponse last_response) {
  return repair_history(messages_from_json_value(input), last_response);
}

TEST(Repair, DamagedHistoriesAreRepairedAsRecorded) {
  test::Tally tally("repairs");
  for (const auto& path : test::fixture_files("messages/repair")) {
    Json fixture = test::read_fixture(path);
    auto full = repaired(fixture["input"], RepairLastResponse::repair);
    auto keep = repaired(fixture["input"], RepairLastResponse::keep);
    bool passed = json_equal(messages_to_json_value(full.messages), fixture["repaired"]) &&
                  json_equal(messages_to_json_value(keep.messages), fixture["repaired_keep_last_response"]) &&
                  full.changed == fixture["changed"];
    EXPECT_TRUE(passed) << path << "\n" << messages_to_json(full.messages);
    tally.count(passed);
  }
  EXPECT_GT(tally.passed(), 0U);
}

TEST(Repair, ARepairedHistoryIsLeftAlone) {
  for (const auto& path : test::fixture_files("messages/repair")) {
    auto once = repaired(test::read_fixture(path)["input"], RepairLastResponse::repair);
    EXPECT_FALSE(repair_history(once.messages, RepairLastResponse::repair).changed) << path;
  }
}

ModelResponse calls(std::vector<std::string> ids) {
  ModelResponse response;
  for (auto& id : ids)
    response.parts.push_back(ToolCallPart{.tool_name = "f", .tool_call_id = std::move(id)});
  return response;
}
ModelRequest results(std::vector<std::string> ids) {
  ModelRequest request;
  for (auto& id : ids)
    request.parts.push_back(ToolReturnPart{.tool_name = "f", .tool_call_id = std::move(id)});
  return request;
}

TEST(Repair, AnIdCalledAgainLeavesTheEarlierCallDangling) {
  auto out = repair_history(
      {calls({"a"}), ModelRequest{.parts = {UserPromptPart{.content = "x"}}}, calls({"a"}), results({"a"})},
      RepairLastResponse::repair);
  ASSERT_EQ(out.messages.size(), 4U);
  const auto& second = std::get<ModelRequest>(out.messages[1]);
  ASSERT_EQ(second.parts.size(), 2U);
  EXPECT_EQ(std::get<ToolReturnPart>(second.parts[0]).outcome, ToolOutcome::interrupted);
  EXPECT_EQ(std::get<ModelRequest>(out.messages[3]).parts.size(), 1U);
}

TEST(Repair, CallsOfOneIdInOneResponseAreAnsweredFirstComeFirstServed) {
  auto out = repair_history({calls({"a", "a"}), results({"a"})}, RepairLastResponse::repair);
  const auto& request = std::get<ModelRequest>(out.messages[1]);
  ASSERT_EQ(request.parts.size(), 2U);
  EXPECT_EQ(std::get<ToolReturnPart>(request.parts[1]).outcome, ToolOutcome::interrupted);
}

TEST(Repair, JoinedRequestsKeepOnlyTheLibrarysOwnMetadata) {
  ModelRequest first = results({});
  first.metadata = {{"mine", 1}, {"__pydantic_ai__", {{"a", 1}, {"b", 1}}}};
  first.run_id = "r";
  ModelRequest second = first;
  second.metadata = {{"__pydantic_ai__", {{"b", 2}}}};
  second.timestamp = Timestamp{.microseconds = 5};
  second.instructions = "I";
  auto out = repair_history({first, second}, RepairLastResponse::repair);
  ASSERT_EQ(out.messages.size(), 1U);
  const auto& joined = std::get<ModelRequest>(out.messages[0]);
  EXPECT_EQ(dump_json(joined.metadata), R"({"__pydantic_ai__":{"a":1,"b":2}})");
  EXPECT_EQ(joined.run_id, std::nullopt);
  EXPECT_EQ(joined.instructions, "I");
  EXPECT_EQ(joined.timestamp->microseconds, 5);
}

TEST(Repair, ManyCallsOfOneIdTakeLinearTime) {
  MessageHistory history;
  for (int i = 0; i < 20'000; ++i) history.push_back(calls({"a"}));
  EXPECT_TRUE(repair_history(std::move(history), RepairLastResponse::repair).changed);
}

}  // namespace
}  // namespace holt
