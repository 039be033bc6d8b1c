#include "models/stream_assembler.hpp"

#include "holt/models/errors.hpp"

#include <fmt/format.h>

namespace holt {
namespace {

template <class... Fns>
struct Overloaded : Fns... {
  using Fns::operator()...;
};

bool is_blank(std::string_view text) {
  return text.find_first_not_of(" \t\r\n\f\v") == std::string_view::npos;
}

template <class Part>
Part& expect_part(ResponsePart& part, std::string_view kind) {
  if (auto* found = std::get_if<Part>(&part)) return *found;
  throw UnexpectedModelBehavior(
      fmt::format("The stream sent a piece of {} for a part of kind {}", kind, part_kind(part)));
}

}  // namespace

std::string part_kind(const ResponsePart& part) {
  return std::visit(Overloaded{
                        [](const TextPart&) { return "text"; },
                        [](const ThinkingPart&) { return "thinking"; },
                        [](const ToolCallPart&) { return "tool-call"; },
                        [](const BuiltinToolCallPart&) { return "builtin-tool-call"; },
                        [](const BuiltinToolReturnPart&) { return "builtin-tool-return"; },
                        [](const FilePart&) { return "file"; },
                        [](const CompactionPart&) { return "compaction"; },
                        [](const SpeechPart&) { return "speech"; },
                    },
                    part);
}

Json add_arguments(Json args, const Json& delta) {
  if (delta.is_null()) return args;
  if (args.is_null()) return delta;
  if (args.is_string() && delta.is_string()) {
    // In place: the whole text copied for each delta would be quadratic.
    args.get_ref<std::string&>() += delta.get_ref<const std::string&>();
    return args;
  }
  if (args.is_object() && delta.is_object()) {
    args.update(delta);
    return args;
  }
  throw UnexpectedModelBehavior("The stream mixes text and objects in the arguments of one tool call");
}

OutputRules OutputRules::of(const ModelRequestParameters& resolved) {
  OutputRules rules{.text_is_output = resolved.allow_text_output};
  for (const auto& tool : resolved.output_tools) rules.final_tools.insert(tool.name);
  for (const auto& tool : resolved.function_tools) {
    if (tool.kind == ToolKind::external || tool.kind == ToolKind::unapproved) {
      rules.final_tools.insert(tool.name);
    }
  }
  return rules;
}

StreamAssembler::StreamAssembler(StreamedResponse& stream, OutputRules rules, LeadingWhitespace leading)
    : stream_(stream), rules_(std::move(rules)), leading_(leading) {}

std::optional<std::size_t> StreamAssembler::find(const Key& key) const {
  auto it = index_of_.find(key);
  if (it == index_of_.end()) return std::nullopt;
  return it->second;
}

void StreamAssembler::text(const Key& key, std::string_view content) {
  if (auto index = find(key)) {
    expect_part<TextPart>(stream_.response.parts[*index], "text").content += content;
    return emit(PartDeltaEvent{.index = *index, .delta = TextDelta{.content_delta = std::string(content)}});
  }
  if (leading_ == LeadingWhitespace::drop && is_blank(content)) return;
  start(key, TextPart{.content = std::string(content)});
}

void StreamAssembler::thinking(const Key& key, ThinkingPiece piece) {
  auto index = find(key);
  if (!index) {
    return start(key, ThinkingPart{.content = piece.content.value_or(""),
                                   .id = std::move(piece.id),
                                   .signature = std::move(piece.signature),
                                   .provider_name = std::move(piece.provider_name)});
  }
  auto& part = expect_part<ThinkingPart>(stream_.response.parts[*index], "thinking");
  if (piece.content) part.content += *piece.content;
  if (piece.signature) part.signature = piece.signature;
  if (piece.provider_name) part.provider_name = piece.provider_name;
  emit(PartDeltaEvent{.index = *index,
                      .delta = ThinkingDelta{.content_delta = std::move(piece.content),
                                             .signature_delta = std::move(piece.signature),
                                             .provider_name = std::move(piece.provider_name)}});
}

void StreamAssembler::tool_call(const Key& key, ToolCallPiece piece) {
  if (auto index = find(key)) {
    auto& part = expect_part<ToolCallPart>(stream_.response.parts[*index], "a tool call");
    if (piece.name) part.tool_name += *piece.name;
    part.args = add_arguments(std::move(part.args), piece.args);
    if (piece.tool_call_id) part.tool_call_id = *piece.tool_call_id;
    return emit(PartDeltaEvent{.index = *index,
                               .delta = ToolCallDelta{.tool_name_delta = std::move(piece.name),
                                                      .args_delta = std::move(piece.args),
                                                      .tool_call_id = part.tool_call_id}});
  }
  auto& held = held_back_[key];
  if (piece.name) held.name = held.name.value_or("") + *piece.name;
  held.args = add_arguments(std::move(held.args), piece.args);
  if (piece.tool_call_id) held.tool_call_id = std::move(piece.tool_call_id);
  if (!held.name || held.name->empty()) return;
  ToolCallPiece whole = std::move(held);
  held_back_.erase(key);
  start(key, ToolCallPart{.tool_name = std::move(*whole.name),
                          .args = std::move(whole.args),
                          .tool_call_id =
                              whole.tool_call_id ? std::move(*whole.tool_call_id) : generate_tool_call_id()});
}

void StreamAssembler::finish() {
  end_last(std::nullopt);
}

void StreamAssembler::start(const Key& key, ResponsePart part) {
  std::optional<std::string> previous;
  if (!stream_.response.parts.empty()) previous = part_kind(stream_.response.parts.back());
  end_last(part_kind(part));
  auto index = stream_.response.parts.size();
  stream_.response.parts.push_back(part);
  index_of_[key] = index;
  open_ = index;
  emit(PartStartEvent{.index = index, .part = part, .previous_part_kind = std::move(previous)});
  emit_final_result(part);
}

void StreamAssembler::end_last(std::optional<std::string> next_kind) {
  if (!open_) return;
  auto index = *open_;
  open_.reset();
  emit(PartEndEvent{
      .index = index, .part = stream_.response.parts[index], .next_part_kind = std::move(next_kind)});
}

void StreamAssembler::emit_final_result(const ResponsePart& part) {
  if (final_result_sent_) return;
  if (std::holds_alternative<TextPart>(part) && rules_.text_is_output) {
    final_result_sent_ = true;
    return emit(FinalResultEvent{});
  }
  const auto* call = std::get_if<ToolCallPart>(&part);
  if (call && rules_.final_tools.contains(call->tool_name)) {
    final_result_sent_ = true;
    emit(FinalResultEvent{.tool_name = call->tool_name, .tool_call_id = call->tool_call_id});
  }
}

void StreamAssembler::emit(ModelStreamEvent event) {
  if (stream_.on_event) stream_.on_event(event);
}

}  // namespace holt
