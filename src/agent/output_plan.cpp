#include "agent/output_plan.hpp"

#include "agent/wording.hpp"
#include "holt/base/error.hpp"

#include <algorithm>
#include <cctype>
#include <set>

#include <fmt/format.h>

namespace holt::detail {
namespace {

constexpr const char* k_wrapper_key = "response";

bool is_object_schema(const Json& schema) {
  auto type = schema.find("type");
  return type != schema.end() && *type == "object";
}

OutputMode mode_of(const OutputSpec& spec) {
  if (spec.choices.empty()) return OutputMode::text;
  switch (spec.request) {
    case OutputRequest::tool:
      return OutputMode::tool;
    case OutputRequest::native:
      return OutputMode::native;
    case OutputRequest::prompted:
      return OutputMode::prompted;
    case OutputRequest::automatic:
      break;
  }
  return spec.text ? OutputMode::tool : OutputMode::automatic;
}

/// Letters, digits, '_' and '-' only.
std::string tool_name_characters(const std::string& name) {
  std::string result;
  std::copy_if(name.begin(), name.end(), std::back_inserter(result),
               [](unsigned char c) { return std::isalnum(c) || c == '_' || c == '-'; });
  return result;
}

std::optional<std::string> description_of(const OutputChoice& choice) {
  if (choice.description && choice.type_text) return *choice.description + ". " + *choice.type_text;
  return choice.description ? choice.description : choice.type_text;
}

Json object_of_properties(std::initializer_list<std::pair<const char*, Json>> properties) {
  Json schema = Json::object();
  schema["type"] = "object";
  Json required = Json::array();
  for (const auto& [name, property] : properties) {
    schema["properties"][name] = property;
    required.push_back(name);
  }
  schema["required"] = std::move(required);
  return schema;
}

}  // namespace

OutputPlan::OutputPlan(OutputSpec spec) : spec_(std::move(spec)), mode_(mode_of(spec_)) {
  if (mode_ == OutputMode::tool || mode_ == OutputMode::automatic) make_tools();
  if (mode_ != OutputMode::tool && mode_ != OutputMode::text) make_object();
}

bool OutputPlan::takes_json_text() const {
  return mode_ == OutputMode::automatic || mode_ == OutputMode::native || mode_ == OutputMode::prompted;
}

/// The type's schema as an object: itself, or in the one property `response`. Its text is told elsewhere.
Json OutputPlan::wrapped_schema(const OutputChoice& choice) const {
  Json schema = choice.schema;
  if (is_object_schema(schema)) {
    schema.erase("description");
    return schema;
  }
  Json definitions = schema.contains("$defs") ? schema["$defs"] : Json(nullptr);
  schema.erase("$defs");
  Json wrapper = Json::object();
  if (!definitions.is_null()) wrapper["$defs"] = std::move(definitions);
  wrapper.update(object_of_properties({{k_wrapper_key, std::move(schema)}}));
  return wrapper;
}

void OutputPlan::make_tools() {
  std::set<std::string> taken;
  const bool several = spec_.choices.size() > 1;
  for (const auto& choice : spec_.choices) {
    std::string base = choice.tool_name.value_or(several ? "final_result_" + tool_name_characters(choice.name)
                                                         : std::string("final_result"));
    std::string name = base;
    for (int number = 2; taken.contains(name); ++number) name = fmt::format("{}_{}", base, number);
    taken.insert(name);
    ToolDefinition tool{.name = name};
    std::string fallback(k_output_tool_description);
    tool.description = description_of(choice).value_or(several ? choice.name + ": " + fallback : fallback);
    tool.parameters_json_schema = wrapped_schema(choice);
    tool.strict = choice.strict;
    tool.kind = ToolKind::output;
    if (!is_object_schema(choice.schema)) tool.outer_typed_dict_key = k_wrapper_key;
    tools_.push_back(std::move(tool));
  }
}

void OutputPlan::make_object() {
  OutputObjectDefinition object;
  if (spec_.choices.size() == 1) {
    const auto& choice = spec_.choices.front();
    object.name = choice.tool_name.value_or(choice.name);
    object.description = description_of(choice);
    object.json_schema = wrapped_schema(choice);
    object.strict = choice.strict;
    object_ = std::move(object);
    return;
  }
  Json alternatives = Json::array();
  Json definitions = Json::object();
  for (const auto& choice : spec_.choices) {
    Json data = wrapped_schema(choice);
    if (data.contains("$defs")) definitions.update(data["$defs"]);
    data.erase("$defs");
    data.erase("title");
    Json kind = simple_schema("string");
    kind["const"] = choice.name;
    Json alternative = object_of_properties({{"kind", std::move(kind)}, {"data", std::move(data)}});
    alternative["additionalProperties"] = false;
    alternative["title"] = choice.name;
    if (auto description = description_of(choice)) alternative["description"] = *description;
    alternatives.push_back(std::move(alternative));
  }
  Json any = Json::object();
  any["anyOf"] = std::move(alternatives);
  object.json_schema = object_of_properties({{"result", std::move(any)}});
  object.json_schema["additionalProperties"] = false;
  if (!definitions.empty()) object.json_schema["$defs"] = std::move(definitions);
  object_ = std::move(object);
}

std::optional<std::size_t> OutputPlan::choice_of_tool(const std::string& name) const {
  for (std::size_t i = 0; i < tools_.size(); ++i)
    if (tools_[i].name == name) return i;
  return std::nullopt;
}

OutputPlan::Checked OutputPlan::take(std::size_t choice, Validated validated) const {
  if (!validated) return std::unexpected(error_items_to_json(validated.error()));
  if (is_object_schema(spec_.choices[choice].schema)) return RawOutput{std::move(*validated), choice};
  return RawOutput{validated->at(k_wrapper_key), choice};
}

OutputPlan::Checked OutputPlan::check_arguments(std::size_t choice, const Json& arguments) const {
  return take(choice, validate_arguments(wrapped_schema(spec_.choices[choice]), arguments));
}

OutputPlan::Checked OutputPlan::check_text(const std::string& text) const {
  const std::string bare = strip_fence(text);
  if (spec_.choices.size() == 1) return take(0, validate_json(wrapped_schema(spec_.choices.front()), bare));
  Json kinds = Json::array();
  for (const auto& choice : spec_.choices) kinds.push_back(choice.name);
  Json kind = simple_schema("string");
  kind["enum"] = std::move(kinds);
  Json result = object_of_properties({{"kind", std::move(kind)}, {"data", simple_schema("object")}});
  auto outer = validate_json(object_of_properties({{"result", std::move(result)}}), bare);
  if (!outer) return std::unexpected(error_items_to_json(outer.error()));
  const Json& inner = outer->at("result");
  for (std::size_t i = 0; i < spec_.choices.size(); ++i)
    if (inner.at("kind") == spec_.choices[i].name) return check_arguments(i, inner.at("data"));
  throw Error(ErrorCode::internal, "An output of a kind that its schema does not list");
}

std::string strip_fence(const std::string& text) {
  if (text.starts_with('{')) return text;
  const auto end = text.rfind('}');
  if (end == std::string::npos) return text;
  for (auto fence = text.find("```"); fence != std::string::npos; fence = text.find("```", fence + 1)) {
    auto place = fence + 3;
    while (place < text.size() &&
           (std::isalnum(static_cast<unsigned char>(text[place])) || text[place] == '_'))
      ++place;
    if (text.compare(place, 2, "\n{") == 0 && end > place) return text.substr(place + 1, end - place);
  }
  return text;
}

}  // namespace holt::detail
