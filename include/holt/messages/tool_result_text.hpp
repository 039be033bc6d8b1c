// Tool results and retry feedback as models see them. Rules: docs/reference.md, "Tool results as text".
//
//   std::string text = holt::tool_return_text(part);          // {"error":"no such file"} for a failed result
//   auto feedback = holt::retry_feedback_text(retry_part);    // .voice says system or user
//
// Pure functions, thread-safe. Depends on messages/message.hpp only.
#pragma once

#include "holt/messages/message.hpp"

#include <string>
#include <vector>

namespace holt {

/// A tool result as one text (OpenAI and others; Anthropic sends items as they are).
std::string tool_return_text(const ToolReturnPart& part);
/// The same as an object (Gemini).
Json tool_return_object(const ToolReturnPart& part);

/// The media items among a tool result's content, in order: the content itself, or items of its list.
std::vector<UserContentItem> tool_return_media(const ToolReturnPart& part);

/// A tool result for providers that take media only in user messages: the text, with "See file ID." in the
/// place of each media item, and what follows as user content.
struct ToolReturnWithFiles {
  std::string text;
  std::vector<UserContentItem> user_content;  ///< each media item between two tags that name call and file
};
ToolReturnWithFiles tool_return_with_files(const ToolReturnPart& part);

/// Whether `value` is taken as a media item inside a tool result.
bool is_media_item(const Json& value);

/// Feedback as the model sees it: with the system voice, or as user text.
struct FeedbackText {
  enum class Voice { system, user } voice = Voice::user;
  std::string text;
};
FeedbackText retry_feedback_text(const RetryFeedbackPart& part);

/// Error items (agent/validation.hpp makes them) with `input` left out where a second or later item at depth
/// 0 or 1 repeats the input of the first such item.
Json without_repeated_inputs(Json items);

/// `body` between <TAG> and </TAG>, with every `<` of it that opens or closes one of the library's own tags
/// written as `&lt;`; in a `system` frame only that of `system`.
std::string frame_text(std::string_view tag, std::string_view body);
/// The neutralising alone, for all tags.
std::string neutralise_tags(std::string_view text);

}  // namespace holt
