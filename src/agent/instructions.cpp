#include "agent/instructions.hpp"

#include <string_view>

namespace holt::detail {
namespace {

std::string_view strip(std::string_view text) {
  constexpr std::string_view k_white = " \t\n\r\f\v";
  const auto first = text.find_first_not_of(k_white);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(k_white) - first + 1);
}

/// One source's instructions as blocks: neighbouring texts are one, each function is one of its own.
Task<void> append_blocks(RunPtr run, std::vector<Instruction> source, std::vector<InstructionPart>& blocks) {
  const RunContext context = context_of(run);
  bool join = false;
  for (const auto& instruction : source) {
    if (!instruction.dynamic()) {
      if (join)
        blocks.back().content += "\n\n" + instruction.text();
      else
        blocks.push_back({.content = instruction.text()});
      join = true;
      continue;
    }
    join = false;
    auto pending = instruction.function()(context);
    std::optional<std::string> text = co_await std::move(pending);
    if (text) blocks.push_back({.content = *text, .dynamic = true, .id = instruction.id()});
  }
}

Task<std::optional<std::string>> evaluate(RunPtr run, const SystemPrompt& prompt) {
  if (!prompt.function()) co_return prompt.text();
  const RunContext context = context_of(run);
  auto pending = prompt.function()(context);
  co_return co_await std::move(pending);
}

}  // namespace

Task<std::vector<InstructionPart>> instruction_blocks(RunPtr run) {
  std::vector<InstructionPart> blocks;
  std::vector<std::vector<Instruction>> sources;
  sources.push_back(run->data->options.instructions.items());
  for (const auto& capability : run->capabilities) sources.push_back(capability->instructions().items());
  sources.push_back(run->options.instructions.items());
  for (auto& source : sources) {
    if (source.empty()) continue;
    auto pending = append_blocks(run, std::move(source), blocks);
    co_await std::move(pending);
  }
  std::vector<InstructionPart> ordered;
  for (bool dynamic : {false, true})
    for (auto& block : blocks)
      if (block.dynamic == dynamic) ordered.push_back(std::move(block));
  co_return ordered;
}

std::optional<std::string> join_instructions(const std::vector<InstructionPart>& blocks) {
  std::string joined;
  for (const auto& block : blocks) {
    if (!joined.empty()) joined += "\n\n";
    joined += block.content;
  }
  std::string_view text = strip(joined);
  if (text.empty()) return std::nullopt;
  return std::string(text);
}

Task<std::vector<RequestPart>> system_prompt_parts(RunPtr run) {
  std::vector<RequestPart> parts;
  const auto& prompts = run->data->options.system_prompt;
  for (bool functions : {false, true}) {
    for (const auto& prompt : prompts) {
      if (static_cast<bool>(prompt.function()) != functions) continue;
      auto pending = evaluate(run, prompt);
      std::optional<std::string> text = co_await std::move(pending);
      SystemPromptPart part;
      part.dynamic_ref = prompt.dynamic_ref();
      if (!text && !part.dynamic_ref) continue;
      part.content = text.value_or("");
      parts.push_back(std::move(part));
    }
  }
  co_return parts;
}

Task<void> refresh_system_prompts(RunPtr run) {
  for (const auto& prompt : run->data->options.system_prompt) {
    if (!prompt.dynamic_ref()) continue;
    for (auto& message : run->messages) {
      auto* request = std::get_if<ModelRequest>(&message);
      if (!request) continue;
      for (auto& part : request->parts) {
        auto* system = std::get_if<SystemPromptPart>(&part);
        if (!system || system->dynamic_ref != prompt.dynamic_ref()) continue;
        auto pending = evaluate(run, prompt);
        std::optional<std::string> text = co_await std::move(pending);
        system->content = text.value_or("");
        system->timestamp = Timestamp::now();
      }
    }
  }
}

}  // namespace holt::detail
