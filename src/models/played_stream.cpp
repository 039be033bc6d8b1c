#include "models/played_stream.hpp"

#include "models/stream_assembler.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace holt {
namespace {

/// Byte offset of the middle character.
std::size_t middle(const std::string& text) {
  auto is_start = [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; };
  std::size_t characters = 0;
  for (char c : text) characters += is_start(c) ? 1 : 0;
  std::size_t seen = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (is_start(text[i]) && seen++ == characters / 2) return i;
  }
  return text.size();
}

std::vector<std::string> pieces_of(const std::string& text) {
  std::vector<std::string> pieces;
  std::size_t begin = 0;
  for (auto space = text.find(' '); space != std::string::npos; space = text.find(' ', begin)) {
    pieces.push_back(text.substr(begin, space + 1 - begin));
    begin = space + 1;
  }
  pieces.push_back(text.substr(begin));
  if (pieces.size() == 1 && text.size() > 2) {
    auto half = middle(text);
    return {text.substr(0, half), text.substr(half)};
  }
  return pieces;
}

}  // namespace

void play_as_stream(const ModelResponse& response, const ModelRequestParameters& resolved,
                    StreamedResponse& stream) {
  auto parts = response.parts;
  stream.response = response;
  stream.response.parts.clear();
  stream.response.state = ResponseState::incomplete;
  StreamAssembler assembler(stream, OutputRules::of(resolved));
  try {
    for (std::size_t i = 0; i < parts.size(); ++i) {
      auto key = std::to_string(i);
      if (const auto* text = std::get_if<TextPart>(&parts[i])) {
        for (const auto& piece : pieces_of(text->content)) assembler.text(key, piece);
      } else if (const auto* call = std::get_if<ToolCallPart>(&parts[i])) {
        assembler.tool_call(
            key, {.name = call->tool_name, .args = call->args, .tool_call_id = call->tool_call_id});
      } else if (const auto* thinking = std::get_if<ThinkingPart>(&parts[i])) {
        assembler.thinking(key, {.content = thinking->content,
                                 .signature = thinking->signature,
                                 .id = thinking->id,
                                 .provider_name = thinking->provider_name});
      }
    }
    assembler.finish();
  } catch (...) {
    stream.response.state = ResponseState::interrupted;
    throw;
  }
  stream.response.state = response.state;
}

std::optional<std::string> instructions_text(const MessageHistory& messages,
                                             const ModelRequestParameters& parameters) {
  if (parameters.instruction_parts) {
    std::vector<std::string> texts;
    for (const auto& part : *parameters.instruction_parts) {
      if (!part.content.empty()) texts.push_back(part.content);
    }
    if (texts.empty()) return std::nullopt;
    return fmt::format("{}", fmt::join(texts, "\n\n"));
  }
  for (auto it = messages.rbegin(); it != messages.rend(); ++it) {
    if (const auto* request = std::get_if<ModelRequest>(&*it)) return request->instructions;
  }
  return std::nullopt;
}

}  // namespace holt
