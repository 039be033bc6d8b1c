#include "replay/anthropic_request.hpp"

#include "holt/base/error.hpp"

#include <algorithm>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace holt::replay {
namespace {

[[noreturn]] void refuse(const std::string& why) {
  throw Misfit(why);
}

const Json& need(const Json& object, const char* key, const std::string& where) {
  auto it = object.find(key);
  if (it == object.end()) refuse(fmt::format("{} has no `{}`", where, key));
  return *it;
}

std::string need_text(const Json& object, const char* key, const std::string& where) {
  const auto& value = need(object, key, where);
  if (!value.is_string() || value.get_ref<const std::string&>().empty()) {
    refuse(fmt::format("{}: `{}` must be a text that is not empty", where, key));
  }
  return value.get<std::string>();
}

/// Reads the turns in order and holds them against the API's rules.
class TurnReader {
 public:
  explicit TurnReader(Request& out) : out_(out) {}

  void read(const Json& turn, std::size_t number) {
    where_ = fmt::format("message {}", number);
    if (!turn.is_object()) refuse(where_ + " is no object");
    auto role = need_text(turn, "role", where_);
    check_order(role);
    auto blocks = blocks_of(need(turn, "content", where_));
    if (role == "user") {
      read_user(blocks);
    } else if (role == "assistant") {
      read_assistant(blocks);
    }
    last_role_ = role;
  }

  void finish() const {
    if (!open_calls_.empty()) refuse(unanswered());
  }

 private:
  void check_order(const std::string& role) const {
    if (role != "user" && role != "assistant" && role != "system") {
      refuse(fmt::format("{} has the unknown role '{}'", where_, printable(role, 40)));
    }
    if (last_role_.empty() && role != "user") refuse("the first message must be the user's");
    if (role == "assistant" && last_role_ == "assistant") {
      refuse(where_ + ": two messages of the assistant follow each other");
    }
    if (role == "assistant" && !open_calls_.empty()) refuse(unanswered());
  }

  static Json text_block(const Json& text) { return {{"type", "text"}, {"text", text}}; }

  Json blocks_of(const Json& content) const {
    if (content.is_string()) return Json::array({text_block(content)});
    if (!content.is_array() || content.empty()) refuse(where_ + " has no content");
    for (const auto& block : content) {
      if (!block.is_object()) refuse(where_ + " holds a block that is no object");
    }
    return content;
  }

  void read_user(const Json& blocks) {
    bool others = false;
    std::vector<std::string> texts;
    for (const auto& block : blocks) {
      auto type = need_text(block, "type", where_);
      if (type == "tool_result") {
        if (others) refuse(where_ + ": tool results must come before other content");
        take_result(block);
        continue;
      }
      others = true;
      if (type == "text") texts.push_back(need_text(block, "text", where_));
    }
    // Results may not come later than in the turn behind the calls.
    if (!open_calls_.empty()) refuse(unanswered());
    auto text = fmt::format("{}", fmt::join(texts, "\n"));
    if (text.empty()) return;
    if (!has_first_user_) out_.first_user = text;
    has_first_user_ = true;
    out_.last_user = std::move(text);
  }

  void take_result(const Json& block) {
    auto id = need_text(block, "tool_use_id", where_);
    if (open_calls_.erase(id) == 0) {
      refuse(fmt::format("{}: a tool result for '{}', which is no open call", where_, printable(id, 100)));
    }
    out_.new_results.push_back(result_text(block.value("content", Json(""))));
  }

  static std::string result_text(const Json& content) {
    if (content.is_string()) return content.get<std::string>();
    std::vector<std::string> texts;
    if (content.is_array()) {
      for (const auto& item : content) {
        if (item.is_object() && item.value("type", Json()) == "text" &&
            item.value("text", Json()).is_string()) {
          texts.push_back(item["text"].get<std::string>());
        }
      }
    }
    return fmt::format("{}", fmt::join(texts, "\n"));
  }

  void read_assistant(const Json& blocks) {
    out_.new_results.clear();
    for (const auto& block : blocks) {
      auto type = need_text(block, "type", where_);
      if (type == "text") need_text(block, "text", where_);
      if (type == "tool_result") refuse(where_ + ": a tool result in a message of the assistant");
      if (type != "tool_use") continue;
      auto id = need_text(block, "id", where_);
      need_text(block, "name", where_);
      if (!need(block, "input", where_).is_object()) refuse(where_ + ": the input of a call is no object");
      bool new_id = seen_calls_.insert(id).second;
      if (!new_id) refuse(fmt::format("{}: the call id '{}' is used twice", where_, printable(id, 100)));
      open_calls_.insert(id);
    }
  }

  std::string unanswered() const {
    return fmt::format("the calls '{}' have no result in the message behind them",
                       fmt::join(open_calls_, "', '"));
  }

  Request& out_;
  std::string where_;
  std::string last_role_;
  std::set<std::string> open_calls_;
  std::set<std::string> seen_calls_;
  bool has_first_user_ = false;
};

void read_tools(const Json& body, Request& out) {
  auto tools = body.value("tools", Json::array());
  if (!tools.is_array()) refuse("`tools` is no list");
  for (const auto& tool : tools) {
    if (!tool.is_object()) refuse("a tool is no object");
    auto name = need_text(tool, "name", "a tool");
    if (!need(tool, "input_schema", "tool " + printable(name, 100)).is_object()) {
      refuse(fmt::format("the schema of tool '{}' is no object", printable(name, 100)));
    }
    if (std::find(out.tools.begin(), out.tools.end(), name) != out.tools.end()) {
      refuse(fmt::format("the tool '{}' is there twice", printable(name, 100)));
    }
    out.tools.push_back(name);
  }
  if (out.tools.empty() && body.contains("tool_choice")) refuse("`tool_choice` without tools");
}

}  // namespace

Request read_anthropic_body(const Json& body) {
  if (!body.is_object()) refuse("the body is no object");
  Request request;
  request.model = need_text(body, "model", "the request");
  const auto& max_tokens = need(body, "max_tokens", "the request");
  if (!max_tokens.is_number_integer() || max_tokens.get<std::int64_t>() < 1) {
    refuse("`max_tokens` must be a whole number from 1");
  }
  auto stream = body.value("stream", Json(false));
  if (!stream.is_boolean()) refuse("`stream` must be true or false");
  request.stream = stream.get<bool>();
  read_tools(body, request);
  const auto& messages = need(body, "messages", "the request");
  if (!messages.is_array() || messages.empty()) refuse("`messages` is no list, or empty");
  TurnReader reader(request);
  std::size_t number = 0;
  for (const auto& turn : messages) reader.read(turn, ++number);
  reader.finish();
  return request;
}

}  // namespace holt::replay
