#include "holt/messages/tool_result_text.hpp"

#include "messages/object_builder.hpp"
#include "messages/reading.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace holt {
namespace {

bool is_failure(const ToolReturnPart& part) {
  return part.outcome == ToolOutcome::failed || part.outcome == ToolOutcome::retried;
}

/// Null or an empty list.
bool is_nothing(const Json& value) {
  return value.is_null() || (value.is_array() && value.empty());
}

std::string value_text(const Json& value) {
  if (is_nothing(value)) return {};
  return value.is_string() ? value.get<std::string>() : dump_json(value);
}

/// The content without its media items; a list of one other item beside media counts as that item.
Json value_without_media(const Json& content) {
  if (is_media_item(content)) return nullptr;
  if (!content.is_array()) return content;
  Json rest = Json::array();
  for (const Json& item : content) {
    if (!is_media_item(item)) rest.push_back(item);
  }
  if (rest.size() == 1 && content.size() > 1) return std::move(rest[0]);
  return rest;
}

/// {"error": ...}: a text, but for a retry the value itself when it is no text, such as a list of error
/// items.
Json error_object(const ToolReturnPart& part, const Json& value) {
  bool itself = part.outcome == ToolOutcome::retried && !value.is_string() && !is_nothing(value);
  return ObjectBuilder(1).add("error", itself ? value : Json(value_text(value))).take();
}

std::string escape_html(std::string_view text) {
  std::string out;
  for (char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      case '\'':
        out += "&#x27;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

std::string identifier_of_item(const UserContentItem& item) {
  return std::visit(
      [](const auto& media) -> std::string {
        if constexpr (requires { identifier_of(media); }) {
          return identifier_of(media);
        } else {
          return {};
        }
      },
      item);
}

std::string file_sentence(const UserContentItem& item) {
  return fmt::format("See file {}.", identifier_of_item(item));
}

/// The items of a result with files as texts, each medium a sentence in its place.
Json texts_in_place(const Json& content) {
  Json texts = Json::array();
  for (const Json& item : content) {
    texts.push_back(is_media_item(item) ? file_sentence(content_from_json(item)) : value_text(item));
  }
  return texts;
}

std::string text_with_files(const ToolReturnPart& part, const std::vector<UserContentItem>& media) {
  if (!is_failure(part)) {
    return part.content.is_array() ? dump_json(texts_in_place(part.content)) : file_sentence(media.front());
  }
  Json list = Json::array();
  list.push_back(error_object(part, value_without_media(part.content)));
  for (const auto& item : media) list.push_back(file_sentence(item));
  return dump_json(list);
}

}  // namespace

std::string tool_return_text(const ToolReturnPart& part) {
  Json value = value_without_media(part.content);
  return is_failure(part) ? dump_json(error_object(part, value)) : value_text(value);
}

Json tool_return_object(const ToolReturnPart& part) {
  Json value = value_without_media(part.content);
  if (is_failure(part)) return error_object(part, value);
  if (is_nothing(value)) return Json::object();
  if (value.is_object()) return value;
  return ObjectBuilder(1).add("return_value", std::move(value)).take();
}

ToolReturnWithFiles tool_return_with_files(const ToolReturnPart& part) {
  auto media = tool_return_media(part);
  if (media.empty()) return {.text = tool_return_text(part), .user_content = {}};
  ToolReturnWithFiles out{.text = text_with_files(part, media), .user_content = {}};
  for (auto& item : media) {
    out.user_content.emplace_back(fmt::format(
        "<tool_result tool_name=\"{}\" tool_call_id=\"{}\" file_id=\"{}\">", escape_html(part.tool_name),
        escape_html(part.tool_call_id), escape_html(identifier_of_item(item))));
    out.user_content.push_back(std::move(item));
    out.user_content.emplace_back("</tool_result>");
  }
  return out;
}

}  // namespace holt
