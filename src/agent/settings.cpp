#include "agent/settings.hpp"

#include "agent/wording.hpp"
#include "holt/base/error.hpp"

namespace holt::detail {
namespace {

void add(const RunPtr& run, const SettingsSource& source) {
  Json layer = source.function() ? source.function()(context_of(run)) : source.settings();
  if (layer.is_null()) return;
  if (!layer.is_object()) throw UserError("Model settings must be a JSON object");
  run->settings.update(layer);
}

/// The effort that a value of `thinking` stands for: a word, or null for true, false and unset.
Json effort_of(const Json& settings) {
  auto thinking = settings.find("thinking");
  if (thinking == settings.end() || !thinking->is_string()) return nullptr;
  return *thinking;
}

}  // namespace

void merge_settings(const RunPtr& run) {
  run->settings = run->model->settings().is_object() ? run->model->settings() : Json::object();
  add(run, run->data->options.model_settings);
  for (const auto& capability : run->capabilities) add(run, capability->model_settings());
  add(run, run->options.model_settings);
}

void check_tool_choice(const Json& settings, const OutputPlan& output) {
  if (!settings.is_object()) return;
  auto choice = settings.find("tool_choice");
  if (choice == settings.end()) return;
  if (*choice == "required") throw UserError(tool_choice_required_loops_text());
  if (!choice->is_array()) return;
  std::vector<std::string> names;
  for (const auto& name : *choice) {
    if (!name.is_string()) throw UserError("`tool_choice` must hold names of tools");
    names.push_back(name.get<std::string>());
    if (output.choice_of_tool(names.back())) return;
  }
  throw UserError(tool_choice_names_loop_text("[" + quoted_list(names) + "]"));
}

std::optional<ModelSettingsDeltaPart> settings_delta(const MessageHistory& history,
                                                     const ModelSettings& now) {
  std::optional<Json> before;
  for (auto message = history.rbegin(); message != history.rend() && !before; ++message) {
    const auto* request = std::get_if<ModelRequest>(&*message);
    if (!request) continue;
    for (auto part = request->parts.rbegin(); part != request->parts.rend() && !before; ++part)
      if (const auto* delta = std::get_if<ModelSettingsDeltaPart>(&*part))
        before = effort_of(delta->settings);
  }
  const Json old_effort = before.value_or(nullptr);
  const Json new_effort = effort_of(now);
  if (old_effort == new_effort) return std::nullopt;
  ModelSettingsDeltaPart part;
  part.settings["thinking"] = new_effort;
  part.top_level = !before || old_effort.is_null() || new_effort.is_null();
  return part;
}

}  // namespace holt::detail
