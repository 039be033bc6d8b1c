#include "holt/base/error.hpp"
#include "models/anthropic_mapping.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace holt::anthropic {
namespace {

constexpr std::size_t k_marks = 4;

/// A retention as the API has them: 5 minutes or 1 hour. Nothing for false and null.
std::optional<std::string> snapped(const Json& retention) {
  if (retention.is_null() || retention == false) return std::nullopt;
  if (retention == true) return "5m";
  if (retention.is_number()) return retention.get<double>() <= 300 ? "5m" : "1h";
  if (retention.is_string()) {
    auto text = retention.get<std::string>();
    if (text == "5m" || (!text.empty() && text.back() == 's')) return "5m";
    return "1h";
  }
  throw UserError("A cache retention must be true, \"5m\", \"1h\" or a number of seconds");
}

struct Wanted {
  std::optional<std::string> instructions;
  std::optional<std::string> tools;
  std::optional<std::string> messages;
  std::optional<std::string> automatic;
};

Wanted wanted_marks(const Context& context) {
  Wanted wanted;
  if (auto cache = setting(context, "cache"); !cache.is_null()) {
    auto retention = cache.is_object() ? snapped(cache.value("retention", Json(true))) : snapped(cache);
    bool messages = !cache.is_object() || cache.value("messages", Json(true)) != false;
    wanted.instructions = retention;
    wanted.tools = retention;
    if (messages) wanted.automatic = retention;
  }
  auto override_by = [&](const char* name, std::optional<std::string>& slot) {
    if (auto value = setting(context, name); !value.is_null()) slot = snapped(value);
  };
  override_by("anthropic_cache_instructions", wanted.instructions);
  override_by("anthropic_cache_tool_definitions", wanted.tools);
  override_by("anthropic_cache_messages", wanted.messages);
  override_by("anthropic_cache", wanted.automatic);
  bool both = !setting(context, "anthropic_cache").is_null() && wanted.automatic && wanted.messages;
  if (both) {
    throw UserError("`anthropic_cache` and `anthropic_cache_messages` cannot be used together");
  }
  if (wanted.messages) wanted.automatic.reset();
  return wanted;
}

bool can_be_marked(const Json& block) {
  auto type = block.value("type", Json());
  return type != "thinking" && type != "redacted_thinking";
}

bool is_marked(const Json& block) {
  return block.contains("cache_control");
}

void mark_instructions(const std::string& ttl, std::size_t static_blocks, Json& body) {
  auto system = body.find("system");
  if (system == body.end()) return;
  if (system->is_string()) {
    *system = Json::array({Json{{"type", "text"}, {"text", system->get<std::string>()}}});
    static_blocks = 1;
  }
  if (static_blocks == 0) static_blocks = system->size();
  (*system)[static_blocks - 1]["cache_control"] = cache_mark(ttl);
}

void mark_last_turn(const std::string& ttl, Json& messages) {
  if (messages.empty()) return;
  auto& content = messages.back()["content"];
  for (auto it = content.rbegin(); it != content.rend(); ++it) {
    if (!can_be_marked(*it)) continue;
    if (!is_marked(*it)) (*it)["cache_control"] = cache_mark(ttl);
    return;
  }
}

/// All marked blocks in the order in which the API reads them.
std::vector<Json*> marked_blocks(Json& list) {
  std::vector<Json*> found;
  if (!list.is_array()) return found;
  for (auto& item : list) {
    if (item.is_object() && is_marked(item)) found.push_back(&item);
  }
  return found;
}

std::vector<Json*> marked_message_blocks(Json& messages) {
  std::vector<Json*> found;
  for (auto& turn : messages) {
    auto more = marked_blocks(turn["content"]);
    found.insert(found.end(), more.begin(), more.end());
  }
  return found;
}

/// A mark that lives shorter than one behind it is refused by the API, so it is raised.
void raise_earlier(const std::vector<Json*>& marks) {
  bool long_lived = false;
  for (auto it = marks.rbegin(); it != marks.rend(); ++it) {
    auto& ttl = (**it)["cache_control"]["ttl"];
    if (ttl == "1h") long_lived = true;
    if (long_lived) ttl = "1h";
  }
}

}  // namespace

Json cache_mark(const std::string& ttl) {
  return {{"type", "ephemeral"}, {"ttl", ttl}};
}

void add_cache_marks(const Context& context, std::size_t static_system_blocks, Json& body) {
  auto wanted = wanted_marks(context);
  auto& messages = body["messages"];
  if (wanted.tools && body.contains("tools")) {
    body["tools"].back()["cache_control"] = cache_mark(*wanted.tools);
  }
  if (wanted.instructions) mark_instructions(*wanted.instructions, static_system_blocks, body);
  if (wanted.messages) mark_last_turn(*wanted.messages, messages);
  if (wanted.automatic) {
    bool last_is_marked = !messages.empty() && is_marked(messages.back()["content"].back());
    if (!last_is_marked) body["cache_control"] = cache_mark(*wanted.automatic);
  }

  std::vector<Json*> fixed;
  for (const char* list : {"tools", "system"}) {
    if (!body.contains(list)) continue;
    auto more = marked_blocks(body[list]);
    fixed.insert(fixed.end(), more.begin(), more.end());
  }
  auto in_messages = marked_message_blocks(messages);
  std::size_t taken = fixed.size() + (body.contains("cache_control") ? 1 : 0);
  std::size_t room = taken >= k_marks ? 0 : k_marks - taken;
  while (in_messages.size() > room) {
    in_messages.front()->erase("cache_control");
    in_messages.erase(in_messages.begin());
  }
  auto marks = std::move(fixed);
  marks.insert(marks.end(), in_messages.begin(), in_messages.end());
  if (body.contains("cache_control")) marks.push_back(&body);
  raise_earlier(marks);
}

}  // namespace holt::anthropic
