// Tool results and retry feedback as models see them. Rules: spec of the message history §§ 7, 8.
#pragma once

#include "holt/messages/message.hpp"

#include <string>
#include <vector>

namespace holt {

/// A tool result as one text (OpenAI and others; Anthropic sends items as they are).
std::string tool_return_text(const ToolReturnPart& part);
/// The same as an object (Gemini).
Json tool_return_object(const ToolReturnPart& part);

/// The media items among a tool result's content, in order.
std::vector<UserContentItem> tool_return_media(const ToolReturnPart& part);

/// Whether `value` is taken as a media item inside a tool result.
bool is_media_item(const Json& value);

/// Feedback as the model sees it: with the system voice, or as user text.
struct FeedbackText {
  enum class Voice { system, user } voice = Voice::user;
  std::string text;
};
FeedbackText retry_feedback_text(const RetryFeedbackPart& part);

/// Every `<` that opens or closes one of the library's own tags written as `&lt;`.
std::string neutralise_tags(std::string_view text);

}  // namespace holt
