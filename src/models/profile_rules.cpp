#include "models/profile_rules.hpp"

namespace holt::profile_rules {
namespace {

Json parsed(std::string_view text) {
  return Json::parse(text);
}

// Source: Anthropic's model overview and feature pages, as gathered in Pydantic AI 2.62.0.
constexpr std::string_view k_anthropic_traits = R"({
  "max_tokens_within_window": {"anthropic_rejects_max_tokens_beyond_context_window": true},
  "structured_output": {"supports_json_schema_output": true},
  "generation_45": {"anthropic_max_output_tokens": 64000, "tool_deferral_mode": "standalone"},
  "code_execution_2026": {"anthropic_default_code_execution_tool_version": "20260120",
    "anthropic_supported_code_execution_tool_versions": ["20250825", "20260120"]},
  "effort_without_max": {"anthropic_supports_effort": true, "anthropic_supports_max_effort": false},
  "generation_46": {"anthropic_max_output_tokens": 128000, "tool_deferral_mode": "standalone",
    "anthropic_supports_adaptive_thinking": true, "anthropic_supports_dynamic_filtering": true,
    "anthropic_supports_effort": true, "anthropic_supports_on_demand_compaction": true},
  "generation_47": {"anthropic_disallows_budget_thinking": true,
    "anthropic_disallows_sampling_settings": true, "anthropic_supports_task_budgets": true,
    "anthropic_supports_xhigh_effort": true},
  "fast": {"anthropic_supports_fast_speed": true},
  "inline_system": {"supports_inline_system_prompts": true,
    "supports_request_scoped_system_prompts": true, "tool_addition_mode": "by_reference"},
  "thinks_by_default": {"thinking_enabled_by_default": true},
  "thinks_always": {"thinking_always_enabled": true, "thinking_enabled_by_default": true},
  "mid_effort": {"supports_mid_conversation_effort": true},
  "binds_thinking": {"anthropic_binds_thinking_blocks": true},
  "no_top_effort_unthinking": {"anthropic_disallows_top_effort_when_thinking_disabled": true},
  "no_forced_tool": {"supports_forced_tool_choice": false},
  "off_is_between_tools": {"anthropic_disables_thinking_with_between_tools": true}
})";

constexpr std::string_view k_anthropic = R"({
  "anthropic_binds_thinking_blocks": false,
  "anthropic_default_code_execution_tool_version": "20250825",
  "anthropic_disables_thinking_with_between_tools": false,
  "anthropic_disallows_budget_thinking": false,
  "anthropic_disallows_sampling_settings": false,
  "anthropic_disallows_top_effort_when_thinking_disabled": false,
  "anthropic_max_output_tokens": null,
  "anthropic_rejects_max_tokens_beyond_context_window": false,
  "anthropic_supported_code_execution_tool_versions": ["20250825"],
  "anthropic_supports_adaptive_thinking": false,
  "anthropic_supports_dynamic_filtering": false,
  "anthropic_supports_effort": false,
  "anthropic_supports_fast_speed": false,
  "anthropic_supports_max_effort": true,
  "anthropic_supports_on_demand_compaction": false,
  "anthropic_supports_task_budgets": false,
  "anthropic_supports_xhigh_effort": false,
  "default_cache_retention": 300.0,
  "forced_tool_choice_disables_thinking": true,
  "json_schema_transformer": "AnthropicJsonSchemaTransformer",
  "mimics_assistant_message_formatting": true,
  "supported_cache_retentions": ["5m", "1h"],
  "supports_auto_cache": true,
  "supports_cache": true,
  "supports_forced_tool_choice": true,
  "supports_inline_system_prompts": false,
  "supports_json_schema_output": false,
  "supports_mid_conversation_effort": false,
  "supports_request_scoped_system_prompts": false,
  "supports_thinking": true,
  "thinking_always_enabled": false,
  "thinking_enabled_by_default": false,
  "thinking_tags": ["<thinking>", "</thinking>"]
})";

constexpr std::string_view k_common = R"({
  "supports_tools": true,
  "supports_text_output": true,
  "supports_tool_return_schema": false,
  "supports_json_schema_output": false,
  "supports_json_object_output": false,
  "supports_image_output": false,
  "supports_audio_input": false,
  "supports_image_input": true,
  "supports_document_input": true,
  "supports_audio_file_input": true,
  "supports_video_input": true,
  "default_structured_output_mode": "tool",
  "native_output_requires_schema_in_instructions": false,
  "json_schema_transformer": null,
  "supports_cache": false,
  "supports_auto_cache": false,
  "supported_cache_retentions": [],
  "default_cache_retention": null,
  "supports_thinking": false,
  "thinking_always_enabled": false,
  "thinking_enabled_by_default": false,
  "supports_forced_tool_choice": true,
  "supports_forced_tool_choice_with_thinking": true,
  "forced_tool_choice_disables_thinking": false,
  "thinking_tags": ["<think>", "</think>"],
  "mimics_assistant_message_formatting": false,
  "ignore_streamed_leading_whitespace": false,
  "tool_call_id_length": null,
  "tool_deferral_mode": null,
  "tool_addition_mode": null
})";

}  // namespace

const Json& common() {
  static const Json values = parsed(k_common);
  return values;
}

const Json& of_provider(std::string_view provider) {
  static const Json anthropic = parsed(k_anthropic);
  static const Json none = Json::object();
  return provider == "anthropic" ? anthropic : none;
}

std::span<const Rule> rules(std::string_view provider) {
  static const std::vector<Rule> anthropic{
      {"claude-3", {"max_tokens_within_window"}},
      {"claude-sonnet-4", {"max_tokens_within_window"}},
      {"claude-opus-4", {"max_tokens_within_window"}},
      {"claude-opus-4-1", {"max_tokens_within_window", "structured_output"}},
      {"claude-sonnet-4-5", {"structured_output", "generation_45", "code_execution_2026"}},
      {"claude-haiku-4-5", {"structured_output", "generation_45"}},
      {"claude-opus-4-5",
       {"structured_output", "generation_45", "code_execution_2026", "effort_without_max"}},
      {"claude-sonnet-4-6", {"structured_output", "generation_46", "code_execution_2026"}},
      {"claude-opus-4-6", {"structured_output", "generation_46", "code_execution_2026", "fast"}},
      {"claude-opus-4-7",
       {"structured_output", "generation_46", "code_execution_2026", "generation_47", "fast"}},
      {"claude-opus-4-8",
       {"structured_output", "generation_46", "code_execution_2026", "generation_47", "fast",
        "inline_system"}},
      {"claude-opus-5",
       {"structured_output", "generation_46", "code_execution_2026", "generation_47", "fast", "inline_system",
        "thinks_by_default", "mid_effort", "no_top_effort_unthinking"}},
      {"claude-opus-5-5",
       {"structured_output", "generation_46", "code_execution_2026", "generation_47", "fast", "inline_system",
        "thinks_always", "mid_effort", "binds_thinking", "no_forced_tool"}},
      {"claude-sonnet-5",
       {"structured_output", "generation_46", "code_execution_2026", "generation_47", "thinks_by_default"}},
      {"claude-sonnet-5-5",
       {"structured_output", "generation_46", "code_execution_2026", "generation_47", "inline_system",
        "thinks_by_default", "mid_effort", "binds_thinking", "no_top_effort_unthinking", "no_forced_tool",
        "off_is_between_tools"}},
      {"claude-haiku-5-5",
       {"structured_output", "generation_46", "code_execution_2026", "generation_47", "inline_system",
        "thinks_by_default", "mid_effort", "binds_thinking", "no_top_effort_unthinking"}},
      {"claude-fable-5",
       {"structured_output", "generation_46", "code_execution_2026", "generation_47", "inline_system",
        "thinks_always"}},
      {"claude-mythos-5",
       {"structured_output", "generation_46", "code_execution_2026", "generation_47", "inline_system",
        "thinks_always"}},
  };
  if (provider == "anthropic") return anthropic;
  return {};
}

const Json& trait(std::string_view name) {
  static const Json traits = parsed(k_anthropic_traits);
  return traits.at(std::string(name));
}

}  // namespace holt::profile_rules
