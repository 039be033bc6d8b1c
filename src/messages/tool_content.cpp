#include "holt/messages/tool_result_text.hpp"
#include "messages/reading.hpp"

namespace holt {
namespace {

/// Cheap look at the shape: of the kinds of user content only these count inside a tool result, and only with
/// the keys that tell them from data that happens to have a "kind".
bool looks_like_media(const Json& value) {
  if (!value.is_object()) return false;
  auto text = [&](const char* key) -> const std::string* {
    auto found = value.find(key);
    return found != value.end() && found->is_string() ? &found->get_ref<const std::string&>() : nullptr;
  };
  const std::string* kind = text("kind");
  if (!kind) return false;
  if (*kind == "binary") return text("media_type") && text("data");
  if (*kind == "uploaded-file") return text("file_id") && text("provider_name");
  if (!enum_from_word<UrlKind>(*kind)) return false;
  auto media_type = value.find("media_type");
  if (media_type == value.end()) return false;
  return media_type->is_null() ||
         (media_type->is_string() && !media_type->get_ref<const std::string&>().empty());
}

/// The media item that a value of a tool result is, if it is one.
std::optional<UserContentItem> media_item(const Json& value) {
  if (!looks_like_media(value)) return std::nullopt;
  try {
    return content_from_json(value);
  } catch (const Error&) {
    return std::nullopt;  // a look-alike
  }
}

}  // namespace

bool is_media_item(const Json& value) {
  return media_item(value).has_value();
}

std::vector<UserContentItem> tool_return_media(const ToolReturnPart& part) {
  std::vector<UserContentItem> items;
  if (part.content.is_array()) {
    for (const Json& each : part.content) {
      if (auto item = media_item(each)) items.push_back(std::move(*item));
    }
  } else if (auto item = media_item(part.content)) {
    items.push_back(std::move(*item));
  }
  return items;
}

void normalise_tool_content(Json& value) {
  if (auto item = media_item(value)) {
    value = content_to_json(*item);
  } else if (value.is_array()) {
    for (Json& each : value) normalise_tool_content(each);
  } else if (value.is_object()) {
    for (auto& [key, each] : value.get_ref<Json::object_t&>()) normalise_tool_content(each);
  }
}

}  // namespace holt
