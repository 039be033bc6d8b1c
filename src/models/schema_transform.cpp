#include "models/schema_transform.hpp"

#include "holt/base/error.hpp"

#include <array>
#include <string>

#include <fmt/format.h>

namespace holt {
namespace {

constexpr int k_depth_limit = 200;
constexpr std::array<std::string_view, 10> k_string_formats{"date-time", "time", "date", "duration", "email",
                                                            "hostname",  "uri",  "ipv4", "ipv6",     "uuid"};

void check_depth(int depth) {
  if (depth > k_depth_limit) throw UserError("A JSON Schema is nested too deeply");
}

Json take(Json& object, const char* key) {
  auto it = object.find(key);
  if (it == object.end()) return nullptr;
  Json value = std::move(*it);
  object.erase(key);
  return value;
}

/// A value as Python's str() shows it; texts inside lists and objects in quotes.
std::string python_text(const Json& value, bool quoted) {
  if (value.is_null()) return "None";
  if (value.is_boolean()) return value.get<bool>() ? "True" : "False";
  if (value.is_string()) {
    const auto& text = value.get_ref<const std::string&>();
    return quoted ? "'" + text + "'" : text;
  }
  if (value.is_array()) {
    std::string out;
    for (const auto& item : value) out += (out.empty() ? "" : ", ") + python_text(item, true);
    return "[" + out + "]";
  }
  if (value.is_object()) {
    std::string out;
    for (const auto& [key, item] : value.items()) {
      out += fmt::format("{}'{}': {}", out.empty() ? "" : ", ", key, python_text(item, true));
    }
    return "{" + out + "}";
  }
  return dump_json(value);
}

Json strip(Json schema, int depth) {
  check_depth(depth);
  if (!schema.is_object()) return schema;
  schema.erase("title");
  schema.erase("$schema");
  for (const char* map : {"$defs", "properties", "patternProperties"}) {
    auto it = schema.find(map);
    if (it == schema.end() || !it->is_object()) continue;
    for (auto& [name, child] : it->items()) child = strip(std::move(child), depth + 1);
  }
  for (const char* one : {"additionalProperties", "items"}) {
    if (auto it = schema.find(one); it != schema.end()) *it = strip(std::move(*it), depth + 1);
  }
  for (const char* list : {"prefixItems", "anyOf", "oneOf", "allOf"}) {
    auto it = schema.find(list);
    if (it == schema.end() || !it->is_array()) continue;
    for (auto& child : *it) child = strip(std::move(child), depth + 1);
  }
  return schema;
}

bool all_plain(const Json& list) {
  if (!list.is_array() || list.empty()) return false;
  for (const auto& item : list) {
    if (item.is_structured()) return false;
  }
  return true;
}

Json strict(Json schema, int depth);

Json strict_list(const Json& list, int depth) {
  Json out = Json::array();
  for (const auto& item : list) out.push_back(strict(item, depth + 1));
  return out;
}

/// What decides the kind of value: alternatives, fixed values or a type.
void take_kind(Json& rest, Json& out, Json& type, int depth) {
  for (auto [from, to] : {std::pair{"anyOf", "anyOf"}, {"oneOf", "anyOf"}, {"allOf", "allOf"}}) {
    auto it = rest.find(from);
    if (it == rest.end() || !it->is_array()) continue;
    out[to] = strict_list(take(rest, from), depth);
    return;
  }
  if (rest.contains("const")) {
    out["enum"] = Json::array({take(rest, "const")});
    type = nullptr;
    return;
  }
  if (rest.contains("enum") && all_plain(rest["enum"])) {
    out["enum"] = take(rest, "enum");
    type = nullptr;
    return;
  }
  if (type.is_null()) {
    throw UserError(
        "A schema needs one of 'type', 'allOf', 'anyOf', 'oneOf', or a 'const', or an 'enum' with plain "
        "values "
        "(text, number, true, false, null) in it.");
  }
  out["type"] = type;
}

void take_object(Json& rest, Json& out, int depth) {
  out["properties"] = Json::object();
  auto properties = take(rest, "properties");
  if (properties.is_object()) {
    for (const auto& [name, child] : properties.items()) out["properties"][name] = strict(child, depth + 1);
  }
  rest.erase("additionalProperties");
  out["additionalProperties"] = false;
  if (auto required = take(rest, "required"); !required.is_null()) out["required"] = required;
}

void take_string(Json& rest, Json& out) {
  auto format = rest.value("format", Json());
  if (!format.is_string()) return;
  for (auto known : k_string_formats) {
    if (format.get_ref<const std::string&>() == known) out["format"] = take(rest, "format");
  }
}

void take_array(Json& rest, Json& out, int depth) {
  if (auto items = take(rest, "items"); !items.is_null()) out["items"] = strict(std::move(items), depth + 1);
  auto least = rest.value("minItems", Json());
  if (least == 0 || least == 1) out["minItems"] = take(rest, "minItems");
}

void describe_rest(const Json& rest, Json& out) {
  if (rest.empty()) return;
  std::string words;
  for (const auto& [key, value] : rest.items()) {
    words += fmt::format("{}{}: {}", words.empty() ? "" : ", ", key, python_text(value, false));
  }
  std::string description;
  if (auto it = out.find("description"); it != out.end() && it->is_string()) {
    description = it->get<std::string>() + "\n\n";
  }
  out["description"] = description + "{" + words + "}";
}

Json strict(Json rest, int depth) {
  check_depth(depth);
  if (!rest.is_object()) rest = Json::object();
  Json out = Json::object();
  rest.erase("title");
  rest.erase("$schema");
  if (auto defs = take(rest, "$defs"); defs.is_object()) {
    out["$defs"] = Json::object();
    for (const auto& [name, child] : defs.items()) out["$defs"][name] = strict(child, depth + 1);
  }
  if (auto ref = take(rest, "$ref"); !ref.is_null()) {
    out["$ref"] = ref;
    return out;
  }
  auto type = take(rest, "type");
  take_kind(rest, out, type, depth);
  if (auto description = take(rest, "description"); !description.is_null()) out["description"] = description;
  if (type == "object") take_object(rest, out, depth);
  if (type == "string") take_string(rest, out);
  if (type == "array") take_array(rest, out, depth);
  describe_rest(rest, out);
  return out;
}

}  // namespace

Json without_titles(const Json& schema) {
  return strip(schema, 0);
}

Json anthropic_strict_schema(const Json& schema) {
  return strict(schema, 0);
}

}  // namespace holt
