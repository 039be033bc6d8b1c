// Puts a streamed response together: pieces keyed by the provider's own index in, parts and events out.
// Rules: docs/reference.md, "Streams".
#pragma once

#include "holt/models/model.hpp"

#include <map>
#include <optional>
#include <set>
#include <string>

namespace holt {

/// What makes a start or a delta an output.
struct OutputRules {
  bool text_is_output = false;
  std::set<std::string> final_tools = {};  ///< output tools and those whose call is deferred

  static OutputRules of(const ModelRequestParameters& resolved);
};

struct ThinkingPiece {
  std::optional<std::string> content = std::nullopt;
  std::optional<std::string> signature = std::nullopt;
  std::optional<std::string> id = std::nullopt;
  std::optional<std::string> provider_name = std::nullopt;
};
struct ToolCallPiece {
  std::optional<std::string> name = std::nullopt;
  Json args = nullptr;  ///< text to append, object to merge, or null
  std::optional<std::string> tool_call_id = std::nullopt;
};

/// Fills `stream.response.parts` and calls `stream.on_event`. All calls throw UnexpectedModelBehavior when a
/// piece is of another kind than the part of its key, and what on_event throws. Not thread-safe.
class StreamAssembler {
 public:
  using Key = std::string;

  enum class LeadingWhitespace { keep, drop };
  StreamAssembler(StreamedResponse& stream, OutputRules rules,
                  LeadingWhitespace leading = LeadingWhitespace::keep);

  void text(const Key& key, std::string_view content);
  void thinking(const Key& key, ThinkingPiece piece);
  /// A call without a name yet is held back until it has one.
  void tool_call(const Key& key, ToolCallPiece piece);
  /// The end of the whole response: the last part ends. Not called after an error.
  void finish();

  bool saw_anything() const { return !stream_.response.parts.empty(); }

 private:
  std::optional<std::size_t> find(const Key& key) const;
  void start(const Key& key, ResponsePart part);
  void end_last(std::optional<std::string> next_kind);
  void emit_final_result(const ResponsePart& part);
  void emit(ModelStreamEvent event);

  StreamedResponse& stream_;
  OutputRules rules_;
  LeadingWhitespace leading_;
  std::map<Key, std::size_t> index_of_;
  std::map<Key, ToolCallPiece> held_back_;
  std::optional<std::size_t> open_;
  bool final_result_sent_ = false;
};

/// The kind of a part as histories name it ("text", "tool-call", ...).
std::string part_kind(const ResponsePart& part);

/// Arguments with a delta added: text to text, object into object, anything to null. Throws
/// UnexpectedModelBehavior for a mix of text and object.
Json add_arguments(Json args, const Json& delta);

}  // namespace holt
