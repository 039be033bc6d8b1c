// Replies of Anthropic's Messages API, whole and streamed, as responses.
#pragma once

#include "holt/models/model.hpp"
#include "models/exchange.hpp"
#include "models/sse.hpp"
#include "models/stream_assembler.hpp"

#include <set>
#include <string>

namespace holt::anthropic {

/// A whole reply. Throws UnexpectedModelBehavior when it has another shape. `provider_url` is recorded.
ModelResponse read_reply(const Json& reply, const std::string& provider_url);

/// Throws the error that a refusal stands for.
[[noreturn]] void throw_refusal(const RefusedReply& refused, const std::string& model_name, WallTime now);

/// Takes the events of one stream.
class StreamReader {
 public:
  /// `model_name` is the one asked for, used in errors until the stream names its own.
  StreamReader(StreamedResponse& stream, OutputRules rules, std::string model_name, std::string provider_url);

  /// Throws ModelHTTPError and kin for an `error` event, ModelAPIError for bad JSON, UnexpectedModelBehavior
  /// for another shape.
  void take(const SseEvent& event);
  /// The body ended as it should, with or without the closing events. Throws UnexpectedModelBehavior when
  /// nothing came at all, ModelConnectionError when it ended inside a tool call's arguments.
  void end();
  std::string model_name() const;

 private:
  void start_message(const Json& message);
  void start_block(const Json& event);
  void change_block(const Json& event);
  void change_message(const Json& event);
  [[noreturn]] void throw_error_event(const Json& event);
  void add_usage(const Json& usage);

  StreamedResponse& stream_;
  StreamAssembler assembler_;
  std::string asked_model_;
  std::string provider_url_;
  Json usage_ = nullptr;
  std::set<std::string> open_calls_;  ///< tool_use blocks that have not ended
  bool begun_ = false;
  bool stopped_ = false;
};

}  // namespace holt::anthropic
