#include "agent/wording.hpp"

#include "holt/base/json.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace holt::detail {

std::string quoted_list(const std::vector<std::string>& names) {
  std::string result;
  for (const auto& name : names) {
    if (!result.empty()) result += ", ";
    result += fmt::format("'{}'", name);
  }
  return result;
}

std::string short_number(double value) {
  std::string text = json_number(value);
  if (text.ends_with(".0")) text.resize(text.size() - 2);
  return text;
}

std::string unknown_tool_text(const std::string& name, std::vector<std::string> known) {
  if (known.empty()) return fmt::format("There is no tool '{}', nor any other.", name);
  std::sort(known.begin(), known.end());
  return fmt::format("There is no tool '{}'. Tools: {}", name, quoted_list(known));
}

std::string tool_retries_spent_text(const std::string& name, int max) {
  return fmt::format("Tool '{}' has used up its retries ({}). If it needs more, raise its limit.", name, max);
}

std::string output_retries_spent_text(int max) {
  return fmt::format("Output retries used up ({})", max);
}

std::string timed_out_text(double seconds) {
  return fmt::format("Timed out after {} seconds.", short_number(seconds));
}

std::string call_ids_repeat_text(const std::vector<std::string>& ids) {
  return fmt::format("Several function tool calls share a `tool_call_id`: [{}]", quoted_list(ids));
}

std::string tool_timeout_range_text(double value) {
  return fmt::format("tool_timeout must be above 0, not {}", short_number(value));
}

namespace {
std::string token_limit(std::optional<std::int64_t> max) {
  return max ? std::to_string(*max) : std::string("provider default");
}
}  // namespace

std::string token_limit_no_answer_text(std::optional<std::int64_t> max) {
  return fmt::format(
      "The model reached its token limit ({}) before it said anything. Raise `max_tokens`, or ask for "
      "something shorter.",
      token_limit(max));
}

std::string token_limit_in_call_text(std::optional<std::int64_t> max) {
  return fmt::format(
      "The model reached its token limit ({}) inside a tool call, so the arguments are incomplete. Raise "
      "`max_tokens`, or ask for something shorter.",
      token_limit(max));
}

std::string content_filter_text(std::string_view label, const std::string& value) {
  return fmt::format("Stopped by a content filter. {}: '{}'", label, value);
}

std::string no_output_text(AnswerWays ways) {
  std::string text;
  auto add = [&](std::string_view way) {
    if (!text.empty()) text += " or ";
    text += way;
  };
  if (ways.text) add("text");
  if (ways.output_tool)
    add("a call of an output tool");
  else if (ways.tool)
    add("a tool call");
  return fmt::format("Answer with {}.", text);
}

std::string tool_choice_required_loops_text() {
  return "With `tool_choice='required'` the run could never end, as it leaves output tools out. Use "
         "`ToolOrOutput` to allow some tools and output, let a capability set `tool_choice` step by step, or "
         "ask the model without an agent.";
}

std::string tool_choice_names_loop_text(const std::string& names) {
  return fmt::format(
      "With `tool_choice={}` the run could never end, as it names no output tool. Add one, use "
      "`ToolOrOutput`, let a capability set `tool_choice` step by step, or ask the model without an agent.",
      names);
}

}  // namespace holt::detail
