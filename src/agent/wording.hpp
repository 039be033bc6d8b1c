// Every sentence that an agent's run writes for a model, a history or an error.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace holt::detail {

inline constexpr std::string_view k_output_processed = "Final result processed.";
inline constexpr std::string_view k_output_set_aside =
    "Output set aside: a tool of this round asked for another try.";
inline constexpr std::string_view k_output_skipped = "Output tool skipped: there is a final result already.";
inline constexpr std::string_view k_output_not_final =
    "Output tool done, but another output became the final result.";
inline constexpr std::string_view k_output_invalid_skipped =
    "Output tool skipped: its output did not validate.";
inline constexpr std::string_view k_output_function_failed_skipped =
    "Output tool skipped: its output function failed.";
inline constexpr std::string_view k_tool_skipped = "Tool not run: there is a final result already.";
inline constexpr std::string_view k_output_tool_description = "The final answer; it ends the conversation";
inline constexpr std::string_view k_calls_cut =
    "The response was cut at the token limit inside its tool calls, so none of them was run. Send less at "
    "once.";
inline constexpr std::string_view k_no_model = "No model: neither the agent nor the run has one.";
inline constexpr std::string_view k_nothing_to_send =
    "Nothing to send: give a user prompt, a history or instructions";
inline constexpr std::string_view k_history_empty = "The processed history is empty.";
inline constexpr std::string_view k_history_end = "The processed history does not end in a `ModelRequest`.";

/// Names in single quotes, joined by ", ".
std::string quoted_list(const std::vector<std::string>& names);
/// A number as Python prints it: "5", "0.05".
std::string short_number(double value);

std::string unknown_tool_text(const std::string& name, std::vector<std::string> known);
std::string tool_retries_spent_text(const std::string& name, int max);
std::string output_retries_spent_text(int max);
std::string timed_out_text(double seconds);
std::string call_ids_repeat_text(const std::vector<std::string>& ids);
std::string tool_timeout_range_text(double value);
/// `max`: the setting max_tokens.
std::string token_limit_no_answer_text(std::optional<std::int64_t> max);
std::string token_limit_in_call_text(std::optional<std::int64_t> max);
std::string content_filter_text(std::string_view label, const std::string& value);

/// What may come as an answer, where none did.
struct AnswerWays {
  bool text = false;
  bool output_tool = false;
  bool tool = false;
};
std::string no_output_text(AnswerWays ways);

std::string tool_choice_required_loops_text();
std::string tool_choice_names_loop_text(const std::string& names);

}  // namespace holt::detail
