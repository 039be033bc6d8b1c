#include "holt/messages/tool_result_text.hpp"

#include "support/fixtures.hpp"

#include <gtest/gtest.h>

namespace holt {
namespace {

ToolOutcome outcome_of(const Json& word) {
  for (auto outcome : {ToolOutcome::success, ToolOutcome::failed, ToolOutcome::denied,
                       ToolOutcome::interrupted, ToolOutcome::retried}) {
    if (word == Json(std::string(to_string(outcome)))) return outcome;
  }
  throw std::runtime_error("no outcome: " + dump_json(word));
}

Json user_content(const ToolReturnWithFiles& result) {
  Json out = Json::array();
  for (const auto& item : result.user_content) {
    auto* text = std::get_if<std::string>(&item);
    out.push_back(text ? *text : "<file>");
  }
  return out;
}

TEST(ToolResultText, EveryShapeAndOutcomeReadsAsRecorded) {
  test::Tally tally("tool result texts");
  for (const Json& row :
       test::read_fixture(test::fixtures_directory() / "misc/tool_result_texts.json")["cases"]) {
    ToolReturnPart part{.tool_name = "t",
                        .content = row["content"],
                        .tool_call_id = "c1",
                        .outcome = outcome_of(row["outcome"])};
    auto with_files = tool_return_with_files(part);
    bool passed = Json(tool_return_text(part)) == row["text"] &&
                  json_equal(tool_return_object(part), row["object"]) &&
                  Json(with_files.text) == row["text_with_files"] &&
                  json_equal(user_content(with_files), row["user_content"]);
    EXPECT_TRUE(passed) << dump_json(row) << "\n"
                        << tool_return_text(part) << "\n"
                        << dump_json(tool_return_object(part)) << "\n"
                        << with_files.text;
    tally.count(passed);
  }
  EXPECT_GT(tally.passed(), 0U);
}

TEST(ToolResultText, TagsOfFilesAreEscaped) {
  ToolReturnPart part{.tool_name = "a\"<b>&'",
                      .content = content_to_json(BinaryContent{.data = "x", .media_type = "image/png"}),
                      .tool_call_id = "c"};
  auto result = tool_return_with_files(part);
  EXPECT_TRUE(
      std::get<std::string>(result.user_content[0])
          .starts_with("<tool_result tool_name=\"a&quot;&lt;b&gt;&amp;&#x27;\" tool_call_id=\"c\" file_id="));
}

TEST(RetryFeedback, ReadsAsRecorded) {
  test::Tally tally("retry feedback texts");
  Json table = test::read_fixture(test::fixtures_directory() / "misc/retry_feedback_texts.json");
  for (const Json& row : table["cases"]) {
    RetryCause cause = row["cause"] == "no_output"     ? RetryCause::no_output
                       : row["cause"] == "model_retry" ? RetryCause::model_retry
                                                       : RetryCause::validation_error;
    RetryFeedbackPart part{.content = row["content"],
                           .retry = {.cause = cause, .attempt = 1, .max_retries = 1}};
    FeedbackText feedback = retry_feedback_text(part);
    bool framed = row["text"] != row["content"];
    bool passed =
        Json(feedback.text) == row["text"] && framed == (feedback.voice == FeedbackText::Voice::user);
    EXPECT_TRUE(passed) << dump_json(row) << "\n" << feedback.text;
    tally.count(passed);
  }
  for (const Json& row : table["wrap"]) {
    std::string text = frame_text(row["tag"].get<std::string>(), row["body"].get<std::string>());
    EXPECT_EQ(Json(text), row["text"]);
    tally.count(Json(text) == row["text"]);
  }
  for (const Json& text : table["no_output_texts"]) {
    RetryFeedbackPart part{.content = text,
                           .retry = {.cause = RetryCause::no_output, .attempt = 1, .max_retries = 1}};
    EXPECT_EQ(retry_feedback_text(part).voice, FeedbackText::Voice::system) << text;
  }
  EXPECT_GT(tally.passed(), 0U);
}

TEST(RetryFeedback, TagsAreNeutralisedInAnyCaseAndSpacing) {
  EXPECT_EQ(neutralise_tags("< / System\t>"), "&lt; / System\t>");
  EXPECT_EQ(neutralise_tags("</context_diff/><contexts><"), "&lt;/context_diff/><contexts><");
  EXPECT_EQ(neutralise_tags("<system"), "&lt;system");
  EXPECT_EQ(neutralise_tags("<<system>"), "<&lt;system>");
}

}  // namespace
}  // namespace holt
