#include "agent/validator.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace holt::detail {
namespace {

// A recursive schema with unions can make exponential work of a nested value; this is about a second of it.
constexpr std::size_t k_max_steps = 1'000'000;
// More items help no model, and each holds a copy of its input.
constexpr std::size_t k_max_errors = 1000;
constexpr int k_max_reference_hops = 64;

const Json* member(const Json& schema, const char* key) {
  auto found = schema.find(key);
  return found == schema.end() ? nullptr : &*found;
}

/// The members of "anyOf" or "oneOf", or nothing.
const Json* union_members(const Json& schema) {
  for (const char* key : {"anyOf", "oneOf"}) {
    if (const Json* members = member(schema, key); members && members->is_array() && !members->empty()) {
      return members;
    }
  }
  return nullptr;
}

std::vector<const Json*> pointers(const Json& list) {
  std::vector<const Json*> out;
  for (const Json& each : list) out.push_back(&each);
  return out;
}

bool is_null_schema(const Json& schema) {
  const Json* type = member(schema, "type");
  return type && *type == "null";
}

std::string text_of(const Json& schema, const char* key) {
  const Json* value = member(schema, key);
  return value && value->is_string() ? value->get<std::string>() : std::string();
}

/// What a schema without "type" is by its other keywords; empty for anything.
std::string implied_type(const Json& schema) {
  if (schema.contains("properties") || schema.contains("additionalProperties")) return "object";
  if (schema.contains("items") || schema.contains("prefixItems")) return "array";
  return {};
}

/// Takes over errors of a part, with its key or index added to their locations (which grow from their end
/// while the walk comes back; run() turns them round).
void adopt_errors(Outcome& outcome, Outcome part, const Json& key) {
  for (ErrorItem& item : part.errors) {
    if (outcome.errors.size() == k_max_errors) return;
    item.loc.push_back(key);
    outcome.errors.push_back(std::move(item));
  }
}

void adopt_fit(Outcome& outcome, const Outcome& part) {
  outcome.exactness = std::min(outcome.exactness, part.exactness);
  if (part.fields_set) outcome.fields_set = outcome.fields_set.value_or(0) + *part.fields_set;
}

bool fits_better(const Outcome& a, const Outcome& b) {
  if (a.fields_set && b.fields_set && *a.fields_set != *b.fields_set) return *a.fields_set > *b.fields_set;
  return a.exactness > b.exactness;
}

}  // namespace

const Json* resolve(const Json& schema, const Json& root) {
  const Json* at = &schema;
  for (int hop = 0; hop < k_max_reference_hops; ++hop) {
    const Json* reference = at->is_object() ? member(*at, "$ref") : nullptr;
    if (!reference || !reference->is_string()) return at;
    const auto& path = reference->get_ref<const std::string&>();
    if (!path.starts_with('#')) return nullptr;
    try {
      at = &root.at(Json::json_pointer(path.substr(1)));
    } catch (const Json::exception&) {
      return nullptr;
    }
  }
  return nullptr;
}

std::string type_name(const Json& schema, const Json& root) {
  const Json* target = resolve(schema, root);
  if (!target || !target->is_object()) return "any";
  if (const Json* values = member(*target, "enum"); values && values->is_array()) {
    std::string list;
    for (const Json& value : *values) {
      if (!list.empty()) list += ',';
      list += value.is_string() ? fmt::format("'{}'", value.get<std::string>()) : dump_json(value);
    }
    return fmt::format("literal[{}]", list);
  }
  std::string type = text_of(*target, "type");
  if (type.empty()) type = implied_type(*target);
  if (type == "integer") return "int";
  if (type == "number") return "float";
  if (type == "boolean") return "bool";
  if (type == "string") return "str";
  if (type == "null") return "none";
  if (type == "array") {
    const Json* items = member(*target, "items");
    return fmt::format("list[{}]", items && items->is_object() ? type_name(*items, root) : "any");
  }
  if (type == "object") {
    if (std::string title = text_of(*target, "title"); !title.empty()) return title;
    const Json* values = member(*target, "additionalProperties");
    return fmt::format("dict[str,{}]", values && values->is_object() ? type_name(*values, root) : "any");
  }
  if (std::string title = text_of(*target, "title"); !title.empty()) return title;
  return "any";
}

Outcome Validator::run(const Json& value) {
  Outcome outcome = check(root_, value);
  if (steps_ > k_max_steps) return failure("too_complex", "Too much to check for this schema", nullptr);
  for (ErrorItem& item : outcome.errors) std::ranges::reverse(item.loc.get_ref<Json::array_t&>());
  return outcome;
}

Outcome Validator::check(const Json& schema, const Json& value) {
  if (++steps_ > k_max_steps) return failure("too_complex", {}, nullptr);
  const Json* target = resolve(schema, root_);
  if (!target || !target->is_object()) return success(value);
  if (const Json* values = member(*target, "enum"); values && values->is_array()) {
    return check_literal(*values, value);
  }
  if (const Json* constant = member(*target, "const")) return check_literal(Json::array({*constant}), value);
  if (target->contains("discriminator") && union_members(*target)) return check_tagged_union(*target, value);
  if (const Json* members = union_members(*target)) return check_union(pointers(*members), value);
  if (const Json* all = member(*target, "allOf"); all && all->is_array()) return check_all_of(*target, value);
  return check_by_type(*target, value);
}

Outcome Validator::check_by_type(const Json& schema, const Json& value) {
  const Json* type = member(schema, "type");
  if (!type || !type->is_array()) {
    std::string name = type && type->is_string() ? type->get<std::string>() : implied_type(schema);
    return check_one_type(name, schema, value);
  }
  Json branches = Json::array();
  for (const Json& each : *type) {
    Json branch = schema;
    branch["type"] = each;
    branches.push_back(std::move(branch));
  }
  return check_union(pointers(branches), value);
}

Outcome Validator::check_one_type(std::string_view type, const Json& schema, const Json& value) {
  if (type == "object") return check_object(schema, value);
  if (type == "array") return check_list(schema, value);
  if (type == "string") return check_string(schema, value);
  if (type == "integer") return check_integer(schema, value);
  if (type == "number") return check_number(schema, value);
  if (type == "boolean") return check_boolean(value);
  if (type == "null") return check_null(value);
  return success(value);
}

Outcome Validator::check_object(const Json& schema, const Json& value) {
  if (!value.is_object()) {
    std::string title = schema.contains("properties") ? text_of(schema, "title") : "";
    if (title.empty()) return failure("dict_type", "Expected an object", value);
    return failure("model_type", "Expected an object for " + title, value);
  }
  Outcome outcome = success(Json::object());
  if (const Json* properties = member(schema, "properties"); properties && properties->is_object()) {
    outcome.exactness = Exactness::lax;  // a struct has to be made
    outcome.fields_set = 0;
    for (const auto& [name, property] : properties->items()) check_field(schema, name, value, outcome);
  }
  check_extras(schema, value, outcome);
  if (outcome.ok()) {
    if (auto item = check_size(schema, value, "minProperties", "maxProperties"))
      outcome.errors.push_back(*item);
  }
  return outcome;
}

void Validator::check_field(const Json& schema, const std::string& name, const Json& object,
                            Outcome& outcome) {
  const Json& property = schema["properties"][name];
  if (auto given = object.find(name); given != object.end()) {
    Outcome part = check(property, *given);
    outcome.fields_set = outcome.fields_set.value_or(0) + 1;
    adopt_fit(outcome, part);
    if (part.ok()) outcome.value[name] = std::move(part.value);
    adopt_errors(outcome, std::move(part), name);
    return;
  }
  const Json* required = member(schema, "required");
  if (required && required->is_array() && std::ranges::find(*required, Json(name)) != required->end()) {
    outcome.errors.push_back(
        {.type = "missing", .loc = Json::array({name}), .msg = "Required, but missing", .input = object});
  } else if (const Json* fallback = property.is_object() ? member(property, "default") : nullptr) {
    outcome.value[name] = *fallback;
  }
}

void Validator::check_extras(const Json& schema, const Json& object, Outcome& outcome) {
  const Json* rule = member(schema, "additionalProperties");
  const Json* properties = member(schema, "properties");
  bool has_properties = properties && properties->is_object();
  // A struct ignores what it does not know; a map has nothing else.
  if (!rule && has_properties) return;
  auto& members = outcome.value.get_ref<Json::object_t&>();
  for (const auto& [name, value] : object.items()) {
    if (has_properties && properties->contains(name)) continue;
    if (rule && rule->is_boolean() && !rule->get<bool>()) {
      outcome.errors.push_back(
          {.type = "extra_forbidden", .loc = Json::array({name}), .msg = "Unknown field", .input = value});
    } else if (rule && rule->is_object()) {
      Outcome part = check(*rule, value);
      adopt_fit(outcome, part);
      if (part.ok()) members.emplace_back(name, std::move(part.value));
      adopt_errors(outcome, std::move(part), name);
    } else {
      members.emplace_back(name, value);
    }
  }
}

Outcome Validator::check_list(const Json& schema, const Json& value) {
  if (!value.is_array()) return failure("list_type", "Expected an array", value);
  if (auto item = check_size(schema, value, "minItems", "maxItems")) {
    Outcome outcome;
    outcome.errors.push_back(std::move(*item));
    return outcome;
  }
  const Json* items = member(schema, "items");
  const Json* prefix = member(schema, "prefixItems");
  Outcome outcome = success(Json::array());
  outcome.value.get_ref<Json::array_t&>().reserve(value.size());
  for (std::size_t i = 0; i < value.size(); ++i) {
    const Json* rule = prefix && prefix->is_array() && i < prefix->size() ? &(*prefix)[i] : items;
    Outcome part = rule && rule->is_object() ? check(*rule, value[i]) : success(value[i]);
    adopt_fit(outcome, part);
    if (part.ok()) outcome.value.push_back(std::move(part.value));
    adopt_errors(outcome, std::move(part), i);
  }
  return outcome;
}

Outcome Validator::check_union(const std::vector<const Json*>& members, const Json& value) {
  std::vector<const Json*> others;
  for (const Json* each : members) {
    if (!is_null_schema(*each)) others.push_back(each);
  }
  if (others.size() < members.size() && value.is_null()) return success(nullptr);
  if (others.size() == 1) return check(*others.front(), value);
  Outcome errors;
  std::optional<Outcome> best;
  for (const Json* each : others) {
    Outcome outcome = check(*each, value);
    if (!outcome.ok()) {
      adopt_errors(errors, std::move(outcome), type_name(*each, root_));
      continue;
    }
    if (outcome.exactness == Exactness::exact && !outcome.fields_set) return outcome;
    if (!best || fits_better(outcome, *best)) best = std::move(outcome);
  }
  return best ? std::move(*best) : std::move(errors);
}

Outcome Validator::check_tagged_union(const Json& schema, const Json& value) {
  const Json& discriminator = schema["discriminator"];
  std::string field = discriminator.is_object() ? text_of(discriminator, "propertyName") : "";
  const Json* mapping = discriminator.is_object() ? member(discriminator, "mapping") : nullptr;
  if (field.empty() || !mapping || !mapping->is_object())
    return check_union(pointers(*union_members(schema)), value);
  if (!value.is_object()) return failure("dict_type", "Expected an object", value);
  auto tag = value.find(field);
  if (tag == value.end() || !tag->is_string()) {
    return failure("union_tag_not_found", fmt::format("No tag found with '{}'", field), value);
  }
  const auto& name = tag->get_ref<const std::string&>();
  auto target = mapping->find(name);
  if (target == mapping->end() || !target->is_string()) {
    std::string tags;
    for (const auto& [each, reference] : mapping->items()) {
      tags += fmt::format("{}'{}'", tags.empty() ? "" : ", ", each);
    }
    return failure("union_tag_invalid", fmt::format("'{}' is not a tag of '{}'. Tags: {}", name, field, tags),
                   value);
  }
  Json reference = Json::object();
  reference["$ref"] = *target;
  Outcome outcome = check(reference, value);
  Outcome named;
  if (outcome.ok()) return outcome;
  adopt_errors(named, std::move(outcome), name);
  return named;
}

Outcome Validator::check_all_of(const Json& schema, const Json& value) {
  Outcome outcome = success(value);
  for (const Json& each : schema["allOf"]) {
    Outcome part = check(each, outcome.value);
    if (!part.ok()) return part;
    adopt_fit(outcome, part);
    outcome.value = std::move(part.value);
  }
  return outcome;
}

}  // namespace holt::detail
