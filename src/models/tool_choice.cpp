#include "models/tool_choice.hpp"

#include "holt/base/error.hpp"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace holt {
namespace {

using Mode = ResolvedToolChoice::Mode;
using Names = std::vector<std::string>;

bool contains(const Names& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

Names names_of(const std::vector<ToolDefinition>& tools) {
  Names names;
  for (const auto& tool : tools) names.push_back(tool.name);
  return names;
}

Names read_names(const Json& list) {
  Names names;
  for (const auto& item : list) {
    if (!item.is_string()) throw UserError("`tool_choice` must be a word or a list of tool names");
    if (!contains(names, item.get<std::string>())) names.push_back(item.get<std::string>());
  }
  return names;
}

/// A list with at least one known name is taken: the tools of a step may differ from the setting's.
void check_known(const Names& names, const Names& known, const Names& function_tools) {
  bool any = std::any_of(names.begin(), names.end(), [&](const auto& name) { return contains(known, name); });
  if (any) return;
  Names sorted = names;
  std::sort(sorted.begin(), sorted.end());
  throw UserError(fmt::format(
      "`tool_choice` names unknown tools: {{'{}'}}. Known function tools: {}", fmt::join(sorted, "', '"),
      function_tools.empty() ? "none" : fmt::format("{}", fmt::join(function_tools, ", "))));
}

class Resolver {
 public:
  explicit Resolver(const ModelRequestParameters& parameters)
      : functions_(names_of(parameters.function_tools)),
        outputs_(names_of(parameters.output_tools)),
        direct_output_(parameters.allow_text_output || parameters.allow_image_output) {}

  ResolvedToolChoice any() const { return {.mode = open_mode()}; }

  ResolvedToolChoice no_function_tools() const {
    if (outputs_.empty() && direct_output_) return {.mode = Mode::none};
    if (!direct_output_ && functions_.empty()) return {.mode = Mode::required};
    return {.mode = open_mode(), .names = outputs_};
  }

  ResolvedToolChoice required() const {
    if (functions_.empty()) {
      throw UserError(
          "`tool_choice` \"required\" needs a function tool, and there is none. Add one, or use \"auto\" or "
          "\"none\".");
    }
    return {.mode = Mode::required};
  }

  ResolvedToolChoice only(const Names& names) const {
    Names known = functions_;
    known.insert(known.end(), outputs_.begin(), outputs_.end());
    check_known(names, known, functions_);
    return covers_all(names) ? ResolvedToolChoice{.mode = Mode::required}
                             : ResolvedToolChoice{.mode = Mode::required, .names = names};
  }

  ResolvedToolChoice or_output(Names names) const {
    if (names.empty()) {
      if (outputs_.empty() && direct_output_) return {.mode = Mode::none};
      return {.mode = open_mode(), .names = outputs_};
    }
    check_known(names, functions_, functions_);
    names.insert(names.end(), outputs_.begin(), outputs_.end());
    return covers_all(names) ? any() : ResolvedToolChoice{.mode = open_mode(), .names = std::move(names)};
  }

 private:
  Mode open_mode() const { return direct_output_ ? Mode::automatic : Mode::required; }
  bool covers_all(const Names& names) const {
    auto in = [&](const auto& name) { return contains(names, name); };
    return std::all_of(functions_.begin(), functions_.end(), in) &&
           std::all_of(outputs_.begin(), outputs_.end(), in);
  }

  Names functions_;
  Names outputs_;
  bool direct_output_;
};

}  // namespace

ResolvedToolChoice resolve_tool_choice(const Json& setting, const ModelRequestParameters& parameters) {
  Resolver resolver(parameters);
  if (setting.is_null() || setting == "auto") return resolver.any();
  if (setting == "none") return resolver.no_function_tools();
  if (setting == "required") return resolver.required();
  if (setting.is_array()) {
    auto names = read_names(setting);
    return names.empty() ? resolver.no_function_tools() : resolver.only(names);
  }
  if (setting.is_object() && setting.contains("function_tools") && setting["function_tools"].is_array()) {
    return resolver.or_output(read_names(setting["function_tools"]));
  }
  throw UserError("`tool_choice` must be \"auto\", \"none\", \"required\" or a list of tool names");
}

}  // namespace holt
