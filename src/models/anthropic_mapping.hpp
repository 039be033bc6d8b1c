// From prepared messages to the body of a request to Anthropic's Messages API.
//
// build_body() puts it together; the pieces stand in files of their own: messages (anthropic_messages),
// thinking and limits (anthropic_settings), tools (anthropic_tools), cache marks (anthropic_cache).
// Source: Anthropic's API reference, "Messages", version 2026-10-21.
#pragma once

#include "holt/models/model.hpp"
#include "models/tool_choice.hpp"

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace holt::anthropic {

enum class Delivery { whole, streamed };

/// What every step of the mapping looks at.
struct Context {
  const std::string& model_name;
  const ModelProfile& profile;
  const ModelSettings& settings;
  const ModelRequestParameters& parameters;  ///< resolved
};

/// The body. `wanted`: what the caller asked for; a long answer is streamed all the same ("stream": true).
/// Throws UserError for what the API cannot take.
Json build_body(const Context& context, const MessageHistory& messages, Delivery wanted);

// Settings.

/// Setting `name`, null when not given.
Json setting(const Context& context, const std::string& name);
/// Parameters with output mode `automatic` decided.
ModelRequestParameters resolve_parameters(ModelRequestParameters parameters, const ModelProfile& profile,
                                          const ModelSettings& settings);
/// The field `thinking`, null when it is absent.
Json thinking_of(const Context& context);
/// The effort of output_config, null when it is absent.
Json effort_of(const Context& context);
/// Whether the model will think in this request.
bool thinks(const Context& context);
bool has_thinking_budget(const Json& thinking);
std::int64_t max_tokens_of(const Context& context, const Json& thinking);
/// Whether a plain request of so many tokens must be streamed: the API refuses to keep it waiting.
bool must_stream(const Context& context, std::int64_t max_tokens);
/// Adds temperature, top_p, top_k, stop_sequences, service_tier, metadata; warns of what is dropped.
void add_plain_settings(const Context& context, Json& body);

// Tools.

/// Adds `tools` and `tool_choice`, when there are tools.
void add_tools(const Context& context, const Json& thinking, Json& body);

// Messages.

/// The turns; a cache point has put a mark on the block before it.
Json map_messages(const Context& context, const MessageHistory& messages);
/// The field `system` as it is without cache marks: null, text, or text blocks. `static_blocks`: how many of
/// the blocks are the same in every request.
struct SystemBlocks {
  Json value = nullptr;
  std::size_t static_blocks = 0;
};
SystemBlocks system_of(const Context& context, const MessageHistory& messages);

// Caching.

Json cache_mark(const std::string& ttl);
/// Puts the marks that the settings ask for and keeps to the API's limits.
void add_cache_marks(const Context& context, std::size_t static_system_blocks, Json& body);

}  // namespace holt::anthropic
