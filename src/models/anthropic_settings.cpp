#include "holt/base/error.hpp"
#include "holt/base/log.hpp"
#include "models/anthropic_mapping.hpp"
#include "models/schema_transform.hpp"

#include <algorithm>
#include <array>

#include <fmt/format.h>

namespace holt::anthropic {
namespace {

constexpr std::int64_t k_unknown_model_tokens = 16384;
constexpr std::int64_t k_small_window_tokens = 4096;
constexpr std::int64_t k_tokens_beside_thinking = 4096;
// Anthropic's own client refuses to wait longer than ten minutes, which it takes to be so many tokens.
constexpr std::int64_t k_longest_unstreamed = 21333;
constexpr std::int64_t k_longest_unstreamed_opus_4 = 8192;

std::int64_t budget_of(const Json& thinking) {
  if (thinking == true || thinking == "medium") return 10000;
  if (thinking == "minimal") return 1024;
  if (thinking == "low") return 2048;
  if (thinking == "high") return 16384;
  return 32768;
}

bool is_effort(const Json& thinking) {
  constexpr std::array k_words{"minimal", "low", "medium", "high", "xhigh", "max"};
  return thinking.is_string() &&
         std::any_of(k_words.begin(), k_words.end(), [&](const char* word) { return thinking == word; });
}

/// The setting `thinking`, checked: null, a boolean or an effort.
Json thinking_setting(const ModelSettings& settings) {
  auto value = settings.value("thinking", Json());
  if (value.is_null() || value.is_boolean() || is_effort(value)) return value;
  throw UserError("The setting `thinking` must be true, false, minimal, low, medium, high, xhigh or max");
}

Json switched_off(const ModelProfile& profile) {
  if (profile.flag("thinking_always_enabled")) return {{"type", "adaptive"}};
  if (profile.flag("anthropic_disables_thinking_with_between_tools")) return {{"type", "between_tools"}};
  if (profile.flag("thinking_enabled_by_default")) return {{"type", "disabled"}};
  return nullptr;
}

Json thinking_field(const ModelProfile& profile, const ModelSettings& settings) {
  if (auto given = settings.value("anthropic_thinking", Json()); !given.is_null()) return given;
  auto wanted = thinking_setting(settings);
  if (wanted.is_null()) return nullptr;
  if (wanted == false) return switched_off(profile);
  if (profile.flag("anthropic_supports_adaptive_thinking")) return {{"type", "adaptive"}};
  return {{"type", "enabled"}, {"budget_tokens", budget_of(wanted)}};
}

bool request_thinks(const ModelProfile& profile, const Json& thinking) {
  if (thinking.is_object()) {
    auto type = thinking.value("type", Json());
    return type == "enabled" || type == "adaptive";
  }
  return profile.flag("thinking_enabled_by_default") || profile.flag("thinking_always_enabled");
}

void warn_dropped(const std::string& name, const std::string& model) {
  logger("models")->warn("setting {} dropped: model {} does not take it", name, printable(model, 100));
}

void add_service_tier(const Context& context, Json& body) {
  if (auto own = setting(context, "anthropic_service_tier"); !own.is_null()) {
    body["service_tier"] = own;
    return;
  }
  auto tier = setting(context, "service_tier");
  if (tier == "auto") body["service_tier"] = "auto";
  if (tier == "default") body["service_tier"] = "standard_only";
}

}  // namespace

Json setting(const Context& context, const std::string& name) {
  if (!context.settings.is_object()) return nullptr;
  return context.settings.value(name, Json());
}

ModelRequestParameters resolve_parameters(ModelRequestParameters parameters, const ModelProfile& profile,
                                          const ModelSettings& settings) {
  if (parameters.output_mode == OutputMode::automatic) {
    auto thinking = thinking_field(profile, settings.is_object() ? settings : Json::object());
    bool unforced = request_thinks(profile, thinking) &&
                    (has_thinking_budget(thinking) || profile.flag("forced_tool_choice_disables_thinking"));
    if (!unforced) {
      parameters.output_mode = OutputMode::tool;
      parameters.allow_text_output = false;
    } else {
      parameters.output_mode =
          profile.flag("supports_json_schema_output") ? OutputMode::native : OutputMode::prompted;
    }
  }
  if (parameters.output_mode == OutputMode::native || parameters.output_mode == OutputMode::prompted) {
    parameters.output_tools.clear();
  }
  return parameters;
}

Json thinking_of(const Context& context) {
  return thinking_field(context.profile, context.settings.is_object() ? context.settings : Json::object());
}

bool has_thinking_budget(const Json& thinking) {
  return thinking.is_object() && thinking.value("type", Json()) == "enabled";
}

bool thinks(const Context& context) {
  return request_thinks(context.profile, thinking_of(context));
}

Json effort_of(const Context& context) {
  const auto& profile = context.profile;
  if (!profile.flag("anthropic_supports_effort")) return nullptr;
  auto wanted = thinking_setting(context.settings.is_object() ? context.settings : Json::object());
  if (wanted == false && profile.flag("thinking_always_enabled")) return "low";
  if (!wanted.is_string()) return nullptr;
  bool xhigh = profile.flag("anthropic_supports_xhigh_effort");
  bool max = profile.flag("anthropic_supports_max_effort");
  if (wanted == "minimal") return "low";
  if (wanted == "xhigh") return xhigh ? "xhigh" : max ? "max" : "high";
  if (wanted == "max") return max ? "max" : xhigh ? "xhigh" : "high";
  return wanted;
}

std::int64_t max_tokens_of(const Context& context, const Json& thinking) {
  auto tokens = json_whole_part(setting(context, "max_tokens"));
  if (!tokens) tokens = json_whole_part(context.profile.value("anthropic_max_output_tokens"));
  if (!tokens) {
    tokens = context.profile.flag("anthropic_rejects_max_tokens_beyond_context_window")
                 ? k_small_window_tokens
                 : k_unknown_model_tokens;
  }
  auto budget =
      thinking.is_object() ? json_whole_part(thinking.value("budget_tokens", Json())) : std::nullopt;
  if (budget) tokens = std::max(*tokens, std::min(*budget, std::int64_t{1} << 40) + k_tokens_beside_thinking);
  return *tokens;
}

bool must_stream(const Context& context, std::int64_t max_tokens) {
  if (!setting(context, "max_tokens").is_null() && !setting(context, "timeout").is_null()) return false;
  const auto& name = context.model_name;
  bool opus_4 = name.starts_with("claude-opus-4-0") || name.starts_with("claude-opus-4-2025") ||
                name.starts_with("claude-4-opus") || name.starts_with("claude-opus-4-1-2025");
  return max_tokens > (opus_4 ? k_longest_unstreamed_opus_4 : k_longest_unstreamed);
}

void add_plain_settings(const Context& context, Json& body) {
  bool no_sampling = context.profile.flag("anthropic_disallows_sampling_settings");
  for (const char* name : {"temperature", "top_p", "top_k"}) {
    auto value = setting(context, name);
    if (value.is_null()) continue;
    if (no_sampling) {
      warn_dropped(name, context.model_name);
    } else {
      body[name] = std::move(value);
    }
  }
  for (const char* name : {"seed", "presence_penalty", "frequency_penalty", "logit_bias"}) {
    if (!setting(context, name).is_null()) warn_dropped(name, context.model_name);
  }
  if (auto stops = setting(context, "stop_sequences"); !stops.is_null()) body["stop_sequences"] = stops;
  if (auto metadata = setting(context, "anthropic_metadata"); !metadata.is_null())
    body["metadata"] = metadata;
  add_service_tier(context, body);
}

Json build_body(const Context& context, const MessageHistory& messages, Delivery wanted) {
  auto thinking = thinking_of(context);
  auto max_tokens = max_tokens_of(context, thinking);
  Json body{{"max_tokens", max_tokens},
            {"messages", map_messages(context, messages)},
            {"model", context.model_name}};
  auto system = system_of(context, messages);
  if (!system.value.is_null()) body["system"] = system.value;
  body["stream"] = wanted == Delivery::streamed || must_stream(context, max_tokens);
  if (!thinking.is_null()) body["thinking"] = thinking;
  if (auto effort = effort_of(context); !effort.is_null()) body["output_config"]["effort"] = effort;
  if (context.parameters.output_mode == OutputMode::native && context.parameters.output_object) {
    body["output_config"]["format"] = {
        {"type", "json_schema"},
        {"schema", anthropic_strict_schema(context.parameters.output_object->json_schema)}};
  }
  add_tools(context, thinking, body);
  add_plain_settings(context, body);
  add_cache_marks(context, system.static_blocks, body);
  if (auto extra = setting(context, "extra_body"); extra.is_object()) body.update(extra);
  return body;
}

}  // namespace holt::anthropic
