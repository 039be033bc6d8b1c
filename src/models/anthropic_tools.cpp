#include "holt/base/error.hpp"
#include "models/anthropic_mapping.hpp"
#include "models/schema_transform.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace holt::anthropic {
namespace {

Json map_tool(const Context& context, const ToolDefinition& tool) {
  bool strict = tool.strict.value_or(false);
  Json out{{"name", tool.name},
           {"description", tool.description.value_or("")},
           {"input_schema", strict ? anthropic_strict_schema(tool.parameters_json_schema)
                                   : without_titles(tool.parameters_json_schema)}};
  if (strict && context.profile.flag("supports_json_schema_output")) out["strict"] = true;
  return out;
}

bool chosen_by_user(const Json& choice) {
  return choice == "required" || (choice.is_array() && !choice.empty());
}

/// A forced call falls back to a free choice where the model cannot be forced.
void soften(const Context& context, const Json& thinking, ResolvedToolChoice& choice) {
  if (choice.mode != ResolvedToolChoice::Mode::required) return;
  bool budget = has_thinking_budget(thinking);
  if (!budget && context.profile.flag("supports_forced_tool_choice", true)) return;
  auto asked = setting(context, "tool_choice");
  if (!chosen_by_user(asked)) {
    choice.mode = ResolvedToolChoice::Mode::automatic;
    return;
  }
  if (budget) {
    throw UserError(
        fmt::format("Model '{}' cannot take tool_choice={} while it thinks. Switch thinking off, or use "
                    "`tool_choice='auto'`.",
                    context.model_name, dump_json(asked)));
  }
  throw UserError(fmt::format("Model '{}' cannot be forced to call a tool. Use `tool_choice='auto'`.",
                              context.model_name));
}

Json map_choice(const Context& context, const ResolvedToolChoice& choice) {
  Json out;
  switch (choice.mode) {
    case ResolvedToolChoice::Mode::none:
      return {{"type", "none"}};
    case ResolvedToolChoice::Mode::automatic:
      out["type"] = "auto";
      break;
    case ResolvedToolChoice::Mode::required:
      if (choice.names.size() == 1) {
        out = {{"type", "tool"}, {"name", choice.names.front()}};
      } else {
        out["type"] = "any";
      }
      break;
  }
  if (auto parallel = setting(context, "parallel_tool_calls"); parallel.is_boolean()) {
    out["disable_parallel_tool_use"] = !parallel.get<bool>();
  }
  return out;
}

/// One forced tool is named in the choice, and all stay on offer, so that the prompt cache holds.
bool offered(const ResolvedToolChoice& choice, const std::string& name) {
  bool named_in_choice = choice.mode == ResolvedToolChoice::Mode::required && choice.names.size() == 1;
  return choice.names.empty() || named_in_choice ||
         std::find(choice.names.begin(), choice.names.end(), name) != choice.names.end();
}

}  // namespace

void add_tools(const Context& context, const Json& thinking, Json& body) {
  auto choice = resolve_tool_choice(setting(context, "tool_choice"), context.parameters);
  soften(context, thinking, choice);
  Json tools = Json::array();
  for (const auto* list : {&context.parameters.function_tools, &context.parameters.output_tools}) {
    for (const auto& tool : *list) {
      if (offered(choice, tool.name)) tools.push_back(map_tool(context, tool));
    }
  }
  if (tools.empty()) return;
  body["tools"] = std::move(tools);
  body["tool_choice"] = map_choice(context, choice);
}

}  // namespace holt::anthropic
