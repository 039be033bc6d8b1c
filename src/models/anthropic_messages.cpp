#include "holt/base/encoding.hpp"
#include "holt/base/error.hpp"
#include "holt/messages/tool_result_text.hpp"
#include "models/anthropic_mapping.hpp"

#include <array>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace holt::anthropic {
namespace {

template <class... Fns>
struct Overloaded : Fns... {
  using Fns::operator()...;
};

constexpr std::string_view k_provider = "anthropic";

Json text_block(std::string_view text) {
  return {{"type", "text"}, {"text", text}};
}

[[noreturn]] void refuse_media(std::string_view what) {
  throw UserError(fmt::format("Anthropic user prompts cannot hold {}", printable(what, 100)));
}

Json base64_source(const BinaryContent& binary) {
  return {{"type", "base64"},
          {"media_type", binary.media_type},
          {"data", base64_encode(binary.data, Base64Alphabet::standard)}};
}

Json map_binary(const BinaryContent& binary) {
  if (binary.media_type.starts_with("image/")) {
    return {{"type", "image"}, {"source", base64_source(binary)}};
  }
  if (binary.media_type == "application/pdf") {
    return {{"type", "document"}, {"source", base64_source(binary)}};
  }
  if (binary.media_type == "text/plain") {
    return {
        {"type", "document"},
        {"source", {{"type", "text"}, {"media_type", "text/plain"}, {"data", utf8_replace(binary.data)}}}};
  }
  refuse_media(binary.media_type);
}

Json map_url(const FileUrl& url) {
  auto media_type = media_type_of(url).value_or("");
  bool is_text = media_type == "text/plain";
  if (url.force_download != ForceDownload::no || (url.kind == UrlKind::document && is_text)) {
    throw UserError(
        "Content behind a URL that must be downloaded first is not supported yet; give its bytes");
  }
  Json source{{"type", "url"}, {"url", url.url}};
  if (url.kind == UrlKind::image) return {{"type", "image"}, {"source", source}};
  if (url.kind == UrlKind::document && (media_type == "application/pdf" || media_type.empty())) {
    return {{"type", "document"}, {"source", source}};
  }
  refuse_media(media_type.empty() ? "a URL of this kind" : media_type);
}

/// Gathers the turns. A cache point marks the newest block, whatever turn that is in.
class Turns {
 public:
  void open(std::string_view role) {
    role_ = role;
    blocks_ = Json::array();
  }
  void add(Json block) { blocks_.push_back(std::move(block)); }
  void add_text(std::string_view text) {
    if (!text.empty()) add(text_block(text));
  }
  void mark(const std::string& ttl) {
    if (!blocks_.empty()) {
      blocks_.back()["cache_control"] = cache_mark(ttl);
      return;
    }
    if (turns_.empty()) {
      throw UserError("A cache point marks the content before it, so it cannot be the first of all content");
    }
    turns_.back()["content"].back()["cache_control"] = cache_mark(ttl);
  }
  /// Empty turns are left out.
  void close() {
    if (!blocks_.empty()) turns_.push_back({{"role", role_}, {"content", std::move(blocks_)}});
    blocks_ = Json::array();
  }
  bool empty() const { return turns_.empty(); }
  std::string last_role() const { return turns_.empty() ? "" : turns_.back()["role"].get<std::string>(); }
  Json take() { return std::move(turns_); }

 private:
  std::string role_;
  Json blocks_ = Json::array();
  Json turns_ = Json::array();
};

void add_item(Turns& turns, const UserContentItem& item) {
  std::visit(Overloaded{
                 [&](const std::string& text) { turns.add_text(text); },
                 [&](const TextContent& text) { turns.add_text(text.content); },
                 [&](const StructuredContent& structured) { turns.add_text(structured.content); },
                 [&](const FileUrl& url) { turns.add(map_url(url)); },
                 [&](const BinaryContent& binary) { turns.add(map_binary(binary)); },
                 [&](const UploadedFile&) { refuse_media("uploaded files in this version"); },
                 [&](const CachePoint& point) { turns.mark(point.ttl); },
             },
             item);
}

void add_user_prompt(Turns& turns, const UserPromptPart& prompt) {
  if (const auto* text = std::get_if<std::string>(&prompt.content)) return turns.add_text(*text);
  for (const auto& item : std::get<std::vector<UserContentItem>>(prompt.content)) add_item(turns, item);
}

Json map_result_item(const Json& item) {
  if (is_media_item(item)) {
    auto media = tool_return_media(ToolReturnPart{.tool_name = {}, .content = item});
    if (!media.empty()) {
      if (const auto* url = std::get_if<FileUrl>(&media.front())) return map_url(*url);
      if (const auto* binary = std::get_if<BinaryContent>(&media.front())) return map_binary(*binary);
      refuse_media("uploaded files in this version");
    }
  }
  return text_block(item.is_string() ? item.get_ref<const std::string&>() : dump_json(item));
}

bool is_error_items(const ToolReturnPart& part) {
  return part.outcome == ToolOutcome::retried && part.content.is_array();
}

Json map_tool_result(const ToolReturnPart& part) {
  Json content = Json::array();
  if (part.content.is_array() && !is_error_items(part)) {
    for (const auto& item : part.content) content.push_back(map_result_item(item));
  } else {
    content.push_back(map_result_item(part.content));
  }
  if (content.empty()) content = "";
  bool is_error = part.outcome == ToolOutcome::failed || part.outcome == ToolOutcome::retried;
  return {{"type", "tool_result"},
          {"tool_use_id", part.tool_call_id},
          {"content", std::move(content)},
          {"is_error", is_error}};
}

Json call_input(const Json& args) {
  if (args.is_object()) return args;
  if (args.is_null()) return Json::object();
  auto text = args.is_string() ? args.get<std::string>() : dump_json(args);
  if (text.empty()) return Json::object();
  auto value = parse_json(text);
  if (value && value->is_object()) return *value;
  return {{"INVALID_JSON", text}};
}

bool is_own(const ThinkingPart& part) {
  return part.provider_name == k_provider && part.signature && !part.signature->empty();
}

Json map_own_thinking(const ThinkingPart& part) {
  if (part.id == "redacted_thinking") return {{"type", "redacted_thinking"}, {"data", *part.signature}};
  return {{"type", "thinking"}, {"thinking", part.content}, {"signature", *part.signature}};
}

/// Somebody else's thinking, as a user turn before the answer: written into the assistant's own turn, these
/// models would take the form up.
void add_foreign_thinking(Turns& turns, const ModelResponse& response) {
  turns.open("user");
  for (const auto& part : response.parts) {
    const auto* thinking = std::get_if<ThinkingPart>(&part);
    if (!thinking || is_own(*thinking) || thinking->content.empty()) continue;
    turns.add(text_block(fmt::format("<assistant_thinking>\n{}\n</assistant_thinking>", thinking->content)));
  }
  turns.close();
}

void add_response(Turns& turns, const ModelResponse& response) {
  add_foreign_thinking(turns, response);
  turns.open("assistant");
  for (const auto& part : response.parts) {
    if (const auto* text = std::get_if<TextPart>(&part)) {
      turns.add_text(text->content);
    } else if (const auto* call = std::get_if<ToolCallPart>(&part)) {
      turns.add({{"type", "tool_use"},
                 {"id", call->tool_call_id},
                 {"name", call->tool_name},
                 {"input", call_input(call->args)}});
    } else if (const auto* thinking = std::get_if<ThinkingPart>(&part)) {
      if (is_own(*thinking)) turns.add(map_own_thinking(*thinking));
    }
  }
  turns.close();
}

enum class SystemPrompts { leading, inline_turn };

/// Returns the texts of system prompts that want a turn of their own.
std::vector<std::string> add_request(Turns& turns, const ModelRequest& request, SystemPrompts at_start) {
  std::vector<std::string> inline_prompts;
  bool leading = at_start == SystemPrompts::leading;
  turns.open("user");
  for (const auto& part : request.parts) {
    if (const auto* system = std::get_if<SystemPromptPart>(&part)) {
      if (!leading) inline_prompts.push_back(system->content);
      continue;
    }
    leading = false;
    if (const auto* prompt = std::get_if<UserPromptPart>(&part)) add_user_prompt(turns, *prompt);
    if (const auto* result = std::get_if<ToolReturnPart>(&part)) turns.add(map_tool_result(*result));
  }
  turns.close();
  return inline_prompts;
}

void add_system_turn(Turns& turns, const std::vector<std::string>& prompts) {
  if (prompts.empty()) return;
  auto before = turns.last_role();
  if (before != "user" && before != "system") {
    turns.open("user");
    turns.add(text_block("."));
    turns.close();
  }
  turns.open("system");
  for (const auto& prompt : prompts) turns.add_text(prompt);
  turns.close();
}

std::string leading_system_prompt(const MessageHistory& messages) {
  if (messages.empty()) return {};
  const auto* request = std::get_if<ModelRequest>(&messages.front());
  if (!request) return {};
  std::vector<std::string> prompts;
  for (const auto& part : request->parts) {
    const auto* system = std::get_if<SystemPromptPart>(&part);
    if (!system) break;
    if (!system->content.empty()) prompts.push_back(system->content);
  }
  return fmt::format("{}", fmt::join(prompts, "\n\n"));
}

std::vector<InstructionPart> instructions_of(const ModelRequestParameters& parameters,
                                             const MessageHistory& messages) {
  if (parameters.instruction_parts) return *parameters.instruction_parts;
  for (auto it = messages.rbegin(); it != messages.rend(); ++it) {
    const auto* request = std::get_if<ModelRequest>(&*it);
    if (!request) continue;
    if (!request->instructions) return {};
    return {InstructionPart{.content = *request->instructions}};
  }
  return {};
}

/// Key order of the schema in a prompt: what a reader wants first.
Json ordered_for_prompt(const OutputObjectDefinition& output) {
  constexpr std::array k_first{"properties", "required", "type", "additionalProperties"};
  Json out = Json::object();
  for (const char* key : k_first) {
    if (auto it = output.json_schema.find(key); it != output.json_schema.end()) out[key] = *it;
  }
  if (auto it = out.find("properties"); it != out.end() && it->is_object()) {
    for (auto& [name, property] : it->items()) {
      if (!property.is_object()) continue;
      auto sorted = nlohmann::json(property);  // std::map: sorted by name
      Json ordered = Json::object();
      for (const auto& [key, value] : sorted.items()) {
        if (key != "anyOf") ordered[key] = property[key];
      }
      if (property.contains("anyOf")) ordered["anyOf"] = property["anyOf"];
      property = std::move(ordered);
    }
  }
  for (const auto& [key, value] : output.json_schema.items()) {
    if (!out.contains(key) && key != "title" && key != "description") out[key] = value;
  }
  auto title = output.json_schema.value("title", Json());
  if (!output.name.empty()) title = output.name;
  if (!title.is_null()) out["title"] = title;
  auto description = output.json_schema.value("description", Json());
  if (output.description) description = *output.description;
  if (!description.is_null()) out["description"] = description;
  return out;
}

std::string prompted_output(const ModelRequestParameters& parameters) {
  constexpr std::string_view k_template =
      "\nAnswer with one JSON object that fits this schema:\n\n{schema}\n\n"
      "Write nothing else: no other text and no Markdown fence.\n";
  constexpr std::string_view k_hole = "{schema}";
  std::string text(parameters.prompted_output_template.value_or(std::string(k_template)));
  auto schema = dump_json(ordered_for_prompt(*parameters.output_object), {.spaces = true});
  for (auto at = text.find(k_hole); at != std::string::npos; at = text.find(k_hole, at + schema.size())) {
    text.replace(at, k_hole.size(), schema);
  }
  return text;
}

}  // namespace

Json map_messages(const Context&, const MessageHistory& messages) {
  Turns turns;
  std::vector<std::string> waiting;  // system prompts that move behind the user turns that follow directly
  for (std::size_t i = 0; i < messages.size(); ++i) {
    if (const auto* response = std::get_if<ModelResponse>(&messages[i])) {
      add_system_turn(turns, waiting);
      waiting.clear();
      add_response(turns, *response);
      continue;
    }
    auto more = add_request(turns, std::get<ModelRequest>(messages[i]),
                            i == 0 ? SystemPrompts::leading : SystemPrompts::inline_turn);
    waiting.insert(waiting.end(), more.begin(), more.end());
  }
  add_system_turn(turns, waiting);
  return turns.take();
}

SystemBlocks system_of(const Context& context, const MessageHistory& messages) {
  auto prompt = leading_system_prompt(messages);
  auto instructions = instructions_of(context.parameters, messages);
  if (context.parameters.output_mode == OutputMode::prompted && context.parameters.output_object) {
    instructions.push_back({.content = prompted_output(context.parameters)});
  }
  std::erase_if(instructions, [](const InstructionPart& part) { return part.content.empty(); });
  if (instructions.empty()) {
    if (prompt.empty()) return {};
    return {.value = prompt, .static_blocks = 1};
  }
  SystemBlocks out{.value = Json::array()};
  if (!prompt.empty()) out.value.push_back(text_block(prompt));
  out.static_blocks = out.value.size();
  for (const auto& part : instructions) {
    out.value.push_back(text_block(part.content));
    if (!part.dynamic && out.static_blocks + 1 == out.value.size()) out.static_blocks = out.value.size();
  }
  return out;
}

}  // namespace holt::anthropic
