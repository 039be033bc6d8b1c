// What a run leaves behind.
//
//   auto result = agent.run_sync("...");
//   std::cout << result.output() << "\n" << result.all_messages_json() << "\n";
//
// Depends on agent/usage.hpp, messages/ and workspace/. Plain values: copies are independent but for the
// workspace, which is a handle.
#pragma once

#include "holt/agent/output.hpp"
#include "holt/agent/usage.hpp"
#include "holt/base/error.hpp"
#include "holt/messages/message.hpp"
#include "holt/workspace/workspace.hpp"

#include <memory>
#include <optional>
#include <string>
#include <utility>

namespace holt {

/// A run as far as it came: of a finished one, and of one that failed.
class RunRecord : public ErrorContext {
 public:
  /// The history that the run continued and its own messages.
  const MessageHistory& all_messages() const { return messages_; }
  std::string all_messages_json() const { return messages_to_json(messages_); }
  MessageHistory new_messages() const;
  /// all_messages(), the result of the output tool that ended the run replaced by `content`.
  MessageHistory all_messages_with_output(const std::string& content) const;
  std::string new_messages_json() const { return messages_to_json(new_messages()); }
  /// Index in all_messages() at which the run's own messages start.
  std::size_t first_new_message() const { return first_new_; }
  /// The last response; nothing when the model has not answered yet.
  std::optional<ModelResponse> response() const;
  const RunUsage& usage() const { return usage_; }
  const std::string& run_id() const { return run_id_; }
  const std::string& conversation_id() const { return conversation_id_; }
  const Json& metadata() const { return metadata_; }
  /// The run's workspace, still usable. Give it to another run as `workspace`.
  const Workspace& workspace() const { return workspace_; }

  struct Fields {
    MessageHistory messages;
    std::size_t first_new = 0;
    RunUsage usage;
    std::string run_id;
    std::string conversation_id;
    Json metadata;
    Workspace workspace;
    std::optional<std::string> output_tool_call_id;
  };
  explicit RunRecord(Fields fields);

 protected:
  MessageHistory messages_;
  std::size_t first_new_ = 0;
  RunUsage usage_;
  std::string run_id_;
  std::string conversation_id_;
  Json metadata_;
  Workspace workspace_;
  std::optional<std::string> output_tool_call_id_;
};

/// A finished run of output type T.
template <class T = std::string>
class RunResult : public RunRecord {
 public:
  RunResult(RunRecord record, OutputValue<T> output)
      : RunRecord(std::move(record)), output_(std::move(output)) {}
  const OutputValue<T>& output() const { return output_; }

 private:
  OutputValue<T> output_;
};

/// The record that the run attached to an error of its own making or passing; null for other errors.
std::shared_ptr<const RunRecord> run_record(const Error& error);

/// The run was cancelled: by its token, by ctx.cancel(), or by its awaiter. run_record() has what it did.
class RunCancelled : public AgentRunError {
 public:
  explicit RunCancelled(const std::string& message = "Run cancelled.", ErrorCode code = ErrorCode::cancelled)
      : AgentRunError(message, code) {}
};

/// The run took longer than its timeout.
class RunTimedOut : public RunCancelled {
 public:
  RunTimedOut() : RunCancelled("Run timed out.", ErrorCode::timeout) {}
};

}  // namespace holt
