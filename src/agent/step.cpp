#include "agent/step.hpp"

#include "holt/base/error.hpp"

#include <algorithm>
#include <map>

#include <fmt/format.h>

namespace holt::detail {
namespace {

std::vector<Tool> tools_of(const RunPtr& run, const RunContext& context) {
  std::vector<Tool> tools = run->data->options.tools;
  for (const auto& capability : run->capabilities) {
    auto more = capability->tools(context);
    tools.insert(tools.end(), more.begin(), more.end());
  }
  tools.insert(tools.end(), run->options.tools.begin(), run->options.tools.end());
  return tools;
}

ToolDefinition with_defaults(const RunPtr& run, ToolDefinition definition) {
  const auto& agent_timeout = run->data->options.tool_timeout;
  if (!definition.timeout && agent_timeout) definition.timeout = agent_timeout->count();
  return definition;
}

}  // namespace

void prepare_step_tools(const RunPtr& run) {
  const RunContext context = context_of(run);
  std::map<std::string, Tool> by_name;
  std::vector<ToolDefinition> definitions;
  for (const auto& tool : tools_of(run, context)) {
    std::optional<ToolDefinition> definition = tool.definition();
    if (tool.options().prepare) definition = tool.options().prepare(context, *definition);
    if (!definition) continue;
    if (!by_name.emplace(definition->name, tool).second || run->output.choice_of_tool(definition->name))
      throw UserError(fmt::format("Two tools have the name '{}'", definition->name));
    definitions.push_back(with_defaults(run, std::move(*definition)));
  }
  for (const auto& capability : run->capabilities)
    definitions = capability->prepare_tools(context, std::move(definitions));
  run->tools.clear();
  for (auto& definition : definitions) {
    auto tool = by_name.find(definition.name);
    if (tool == by_name.end())
      throw UserError(
          fmt::format("A capability's prepare_tools added the tool '{}'; it may only change tools or "
                      "leave them out",
                      definition.name));
    const int max_retries = tool->second.options().max_retries.value_or(run->retries.tools);
    run->tools.push_back({tool->second, std::move(definition), max_retries});
  }
}

ModelRequestParameters request_parameters(const RunPtr& run, std::vector<InstructionPart> blocks) {
  ModelRequestParameters parameters;
  for (const auto& tool : run->tools) parameters.function_tools.push_back(tool.definition);
  parameters.output_tools = run->output.tools();
  parameters.output_mode = run->output.mode();
  parameters.allow_text_output = run->output.allows_text();
  parameters.output_object = run->output.object();
  if (!blocks.empty()) parameters.instruction_parts = std::move(blocks);
  return parameters;
}

std::optional<ToolAvailabilityDeltaPart> availability_delta(const RunPtr& run) {
  std::set<std::string> names;
  for (const auto& tool : run->tools) names.insert(tool.definition.name);
  if (!run->first_offered) {
    run->first_offered = std::move(names);
    return std::nullopt;
  }
  ToolAvailabilityDeltaPart part;
  for (const auto& name : names)
    if (run->first_offered->insert(name).second) part.tools_added.push_back(name);
  if (part.tools_added.empty()) return std::nullopt;
  return part;
}

}  // namespace holt::detail
