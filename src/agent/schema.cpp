#include "holt/agent/schema.hpp"

#include "holt/base/error.hpp"

#include <cstdlib>
#include <cxxabi.h>
#include <memory>

#include <fmt/format.h>

namespace holt {

FieldFacts& StructFacts::field(std::string_view name) {
  for (auto& facts : fields)
    if (facts.name == name) return facts;
  throw InvalidArgument("A schema names a field that is not among the described members of its struct");
}

namespace detail {

std::string bare_type_name(const std::type_info& type) {
  int status = 0;
  std::unique_ptr<char, decltype(&std::free)> demangled(
      abi::__cxa_demangle(type.name(), nullptr, nullptr, &status), &std::free);
  std::string name = status == 0 && demangled ? demangled.get() : type.name();
  name = name.substr(0, name.find('<'));
  auto scope = name.rfind("::");
  return scope == std::string::npos ? name : name.substr(scope + 2);
}

std::pair<std::string, bool> SchemaDefinitions::enter(const std::type_info& type) {
  if (auto known = names_.find(type); known != names_.end()) return {known->second, false};
  const std::string bare = bare_type_name(type);
  std::string name = bare;
  for (int number = 2; definitions_.contains(name); ++number) name = fmt::format("{}_{}", bare, number);
  names_.emplace(type, name);
  definitions_[name] = nullptr;  // holds the name while the struct's own members are looked at
  return {name, true};
}

namespace {

/// Limits speak of the value itself, so in `anyOf` with null they belong to the other branch.
void add_keywords(Json& schema, const Json& keywords) {
  auto branches = schema.find("anyOf");
  Json& target =
      branches != schema.end() && branches->size() == 2 && branches->back() == Json{{"type", "null"}}
          ? branches->front()
          : schema;
  target.update(keywords);
}

}  // namespace

Json property_schema(Json type_schema, const FieldFacts& facts) {
  add_keywords(type_schema, facts.keywords);
  Json schema = std::move(type_schema);
  if (facts.default_value) schema["default"] = *facts.default_value;
  if (!facts.text.empty()) schema["description"] = facts.text;
  return schema;
}

Json object_schema(const std::string& title, const std::string& text, Json properties,
                   const StructFacts& facts) {
  Json required = Json::array();
  for (const auto& field : facts.fields)
    if (!field.default_value) required.push_back(field.name);
  Json schema = Json::object();
  if (!text.empty()) schema["description"] = text;
  schema["properties"] = std::move(properties);
  if (!required.empty()) schema["required"] = std::move(required);
  if (!title.empty()) schema["title"] = title;
  schema["type"] = "object";
  return schema;
}

Json simple_schema(const char* type) {
  Json schema = Json::object();
  schema["type"] = type;
  return schema;
}

Json array_schema(Json items) {
  Json schema = Json::object();
  schema["items"] = std::move(items);
  schema["type"] = "array";
  return schema;
}

Json map_schema(Json values) {
  Json schema = Json::object();
  if (values.empty())
    schema["additionalProperties"] = true;
  else
    schema["additionalProperties"] = std::move(values);
  schema["type"] = "object";
  return schema;
}

Json nullable_schema(Json type) {
  Json branches = Json::array();
  branches.push_back(std::move(type));
  branches.push_back(simple_schema("null"));
  Json schema = Json::object();
  schema["anyOf"] = std::move(branches);
  return schema;
}

Json reference_schema(const std::string& name) {
  Json schema = Json::object();
  schema["$ref"] = "#/$defs/" + name;
  return schema;
}

void throw_not_representable(const Json& value, const char* type) {
  throw Error(ErrorCode::limit_exceeded,
              fmt::format("{} is too large for an {} here", printable(dump_json(value), 80), type));
}

void throw_wrong_shape(const Json& value, const char* expected) {
  throw Error(ErrorCode::invalid_config,
              fmt::format("Expected {}, not {}", expected, printable(dump_json(value), 80)));
}

double decode_float(const Json& value) {
  if (value.is_number()) return value.get<double>();
  if (is_json_big_integer(value)) return std::strtod(json_big_integer_digits(value).c_str(), nullptr);
  throw_wrong_shape(value, "a number");
}

}  // namespace detail
}  // namespace holt
