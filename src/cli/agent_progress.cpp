#include "cli/agent_progress.hpp"

#include "holt/messages/tool_result_text.hpp"

#include <fmt/format.h>

namespace holt::cli {
namespace {

constexpr std::size_t k_shown = 100;  // bytes of a call or result on its line

/// The first line of a text, cut.
std::string first_line(const std::string& text) {
  auto end = text.find('\n');
  auto line = printable(std::string_view(text).substr(0, end), k_shown);
  return end == std::string::npos || end + 1 == text.size() ? line : line + " ...";
}

Json arguments_of(const ToolCallPart& part) {
  if (!part.args.is_string()) return part.args;
  auto parsed = parse_json(part.args.get<std::string>());
  return parsed ? *parsed : part.args;
}

/// How a result is shown: what went wrong, or the line that says most.
std::string short_result(const ToolReturnPart& part) {
  auto text = part.content.is_string() ? part.content.get<std::string>() : tool_return_text(part);
  if (part.outcome != ToolOutcome::success) return "failed: " + first_line(text);
  return first_line(text);
}

}  // namespace

std::string short_arguments(const ToolCallPart& part) {
  auto arguments = arguments_of(part);
  for (const char* key : {"command", "path", "pattern"}) {
    if (arguments.is_object() && arguments.contains(key) && arguments[key].is_string()) {
      return first_line(arguments[key].get<std::string>());
    }
  }
  return arguments.is_null() ? "" : printable(dump_json(arguments), k_shown);
}

std::string last_line(const std::string& text) {
  auto end = text.find_last_not_of(" \t\r\n");
  if (end == std::string::npos) return "";
  auto begin = text.rfind('\n', end);
  begin = begin == std::string::npos ? 0 : begin + 1;
  return text.substr(begin, end + 1 - begin);
}

void AgentProgress::show(const AgentEvent& event) {
  if (session_->globals.quiet) return;
  std::lock_guard lock(mutex_);
  if (const auto* call = std::get_if<FunctionToolCallEvent>(&event)) {
    show_call(call->part);
  } else if (const auto* result = std::get_if<FunctionToolResultEvent>(&event)) {
    show_result(result->part);
  } else if (const auto* custom = std::get_if<CustomEvent>(&event)) {
    show_output(*custom);
  } else if (const auto* start = std::get_if<PartStartEvent>(&event)) {
    const auto* text = std::get_if<TextPart>(&start->part);
    text_.clear();
    if (text != nullptr) show_text(text->content);
  } else if (const auto* delta = std::get_if<PartDeltaEvent>(&event)) {
    if (const auto* text = std::get_if<TextDelta>(&delta->delta)) show_text(text->content_delta);
  }
}

void AgentProgress::show_call(const ToolCallPart& part) {
  session_->output.note(fmt::format("{} {}", printable(part.tool_name, k_shown), short_arguments(part)));
}

void AgentProgress::show_result(const ToolReturnPart& part) {
  session_->output.note(fmt::format("  {}", short_result(part)));
}

void AgentProgress::show_output(const CustomEvent& event) {
  if (event.name != "shell.command_output" || !event.data.is_object() || !event.data.contains("text")) return;
  const auto& text = event.data["text"];
  if (text.is_string()) tail(text.get<std::string>());
}

void AgentProgress::show_text(const std::string& delta) {
  text_ += delta;
  tail(text_);
}

void AgentProgress::tail(const std::string& text) {
  auto line = last_line(text);
  if (!line.empty()) session_->output.progress("holt:   " + line);
}

}  // namespace holt::cli
