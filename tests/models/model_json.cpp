#include "models/model_json.hpp"

#include <stdexcept>

namespace holt::test {
namespace {

std::optional<std::string> optional_text(const Json& object, const char* name) {
  auto value = object.value(name, Json());
  if (value.is_null()) return std::nullopt;
  return value.get<std::string>();
}

std::optional<bool> optional_flag(const Json& object, const char* name) {
  auto value = object.value(name, Json());
  if (value.is_null()) return std::nullopt;
  return value.get<bool>();
}

ToolDefinition tool_from_json(const Json& value) {
  ToolDefinition tool{.name = value.at("name"),
                      .description = optional_text(value, "description"),
                      .parameters_json_schema = value.at("parameters_json_schema"),
                      .strict = optional_flag(value, "strict")};
  auto kind = value.value("kind", std::string("function"));
  if (kind == "output") tool.kind = ToolKind::output;
  if (kind == "external") tool.kind = ToolKind::external;
  if (kind == "unapproved") tool.kind = ToolKind::unapproved;
  return tool;
}

OutputMode mode_from_text(const std::string& text) {
  if (text == "tool") return OutputMode::tool;
  if (text == "native") return OutputMode::native;
  if (text == "prompted") return OutputMode::prompted;
  if (text == "auto") return OutputMode::automatic;
  if (text == "image") return OutputMode::image;
  return OutputMode::text;
}

template <class Class>
void add(std::set<std::string>& names, const std::exception& error, const char* name) {
  if (dynamic_cast<const Class*>(&error)) names.insert(name);
}

}  // namespace

ModelRequestParameters parameters_from_json(const Json& value) {
  ModelRequestParameters out;
  for (const auto& tool : value.at("function_tools")) out.function_tools.push_back(tool_from_json(tool));
  for (const auto& tool : value.at("output_tools")) out.output_tools.push_back(tool_from_json(tool));
  out.output_mode = mode_from_text(value.at("output_mode"));
  out.allow_text_output = value.at("allow_text_output");
  out.allow_image_output = value.at("allow_image_output");
  if (const auto& object = value.at("output_object"); object.is_object()) {
    out.output_object = OutputObjectDefinition{.name = optional_text(object, "name").value_or(""),
                                               .description = optional_text(object, "description"),
                                               .json_schema = object.at("json_schema"),
                                               .strict = optional_flag(object, "strict")};
  }
  out.prompted_output_template = optional_text(value, "prompted_output_template");
  if (const auto& parts = value.at("instruction_parts"); parts.is_array()) {
    out.instruction_parts.emplace();
    for (const auto& part : parts) {
      out.instruction_parts->push_back({.content = part.at("content"), .dynamic = part.at("dynamic")});
    }
  }
  return out;
}

std::set<std::string> class_names(const std::exception& error) {
  std::set<std::string> names;
  add<UserError>(names, error, "UserError");
  add<AgentRunError>(names, error, "AgentRunError");
  add<UnexpectedModelBehavior>(names, error, "UnexpectedModelBehavior");
  add<ContentFilterError>(names, error, "ContentFilterError");
  add<IncompleteToolCall>(names, error, "IncompleteToolCall");
  add<ModelAPIError>(names, error, "ModelAPIError");
  add<ModelHTTPError>(names, error, "ModelHTTPError");
  add<ModelRateLimitError>(names, error, "ModelRateLimitError");
  add<ModelQuotaExceededError>(names, error, "ModelQuotaExceededError");
  add<ModelUnavailableError>(names, error, "ModelUnavailableError");
  add<ModelOverloadedError>(names, error, "ModelOverloadedError");
  add<ModelServerError>(names, error, "ModelServerError");
  add<ModelRequestRejectedError>(names, error, "ModelRequestRejectedError");
  add<ModelContextWindowExceededError>(names, error, "ModelContextWindowExceededError");
  add<ModelAuthenticationError>(names, error, "ModelAuthenticationError");
  add<ModelNotFoundError>(names, error, "ModelNotFoundError");
  add<ModelConnectionError>(names, error, "ModelConnectionError");
  add<ModelTimeoutError>(names, error, "ModelTimeoutError");
  add<ModelRequestTimeout>(names, error, "ModelRequestTimeout");
  return names;
}

std::set<std::string> recorded_class_names(const Json& raised) {
  auto type = raised.at("type").get<std::string>();
  if (type == "NotImplementedError" || type == "RuntimeError") return {"UserError"};
  if (type == "TypeError") return {"UnexpectedModelBehavior", "AgentRunError"};
  std::set<std::string> names{type};
  for (const auto& name : raised.at("mro")) {
    if (!name.get<std::string>().starts_with("_")) names.insert(name);
  }
  return names;
}

}  // namespace holt::test
