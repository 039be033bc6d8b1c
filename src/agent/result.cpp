#include "holt/agent/result.hpp"

namespace holt {

RunRecord::RunRecord(Fields fields)
    : messages_(std::move(fields.messages)),
      first_new_(fields.first_new),
      usage_(std::move(fields.usage)),
      run_id_(std::move(fields.run_id)),
      conversation_id_(std::move(fields.conversation_id)),
      metadata_(std::move(fields.metadata)),
      workspace_(std::move(fields.workspace)),
      output_tool_call_id_(std::move(fields.output_tool_call_id)) {}

MessageHistory RunRecord::new_messages() const {
  return {messages_.begin() + static_cast<std::ptrdiff_t>(first_new_), messages_.end()};
}

std::optional<ModelResponse> RunRecord::response() const {
  for (auto message = messages_.rbegin(); message != messages_.rend(); ++message)
    if (const auto* response = std::get_if<ModelResponse>(&*message)) return *response;
  return std::nullopt;
}

MessageHistory RunRecord::all_messages_with_output(const std::string& content) const {
  MessageHistory messages = messages_;
  if (!output_tool_call_id_ || messages.empty()) return messages;
  auto* last = std::get_if<ModelRequest>(&messages.back());
  if (!last) return messages;
  for (auto& part : last->parts)
    if (auto* result = std::get_if<ToolReturnPart>(&part);
        result && result->tool_call_id == output_tool_call_id_)
      result->content = content;
  return messages;
}

std::shared_ptr<const RunRecord> run_record(const Error& error) {
  return std::dynamic_pointer_cast<const RunRecord>(error.context());
}

}  // namespace holt
