// What an agent does, step by step, for people: tool calls, their ends, the last line of a running command.
#pragma once

#include "cli/session.hpp"
#include "holt/agent/events.hpp"

#include <mutex>
#include <string>

namespace holt::cli {

/// Shows events on standard error: a line for each tool call and its end; on a terminal also what a command
/// or the model is writing, on a line that goes again. Everything a model or a guest says is escaped.
/// Thread-safe.
class AgentProgress {
 public:
  explicit AgentProgress(Session& session) : session_(&session) {}
  void show(const AgentEvent& event);

 private:
  void show_call(const ToolCallPart& part);
  void show_result(const ToolReturnPart& part);
  void show_output(const CustomEvent& event);
  void show_text(const std::string& delta);
  void tail(const std::string& text);

  Session* session_;
  std::mutex mutex_;
  std::string text_;  ///< what the model has written of its present text
};

/// One line of a call's arguments: the command, the path, or the JSON.
std::string short_arguments(const ToolCallPart& part);
/// The last line of a text that has more than white space.
std::string last_line(const std::string& text);

}  // namespace holt::cli
