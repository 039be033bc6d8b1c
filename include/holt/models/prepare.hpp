// A repaired history made ready for a provider's mapping: what all providers have in common.
//
//   auto prepared = holt::prepare_messages(history, model.profile());
//
// Depends on messages/ and profile.hpp.
#pragma once

#include "holt/messages/message.hpp"
#include "holt/models/profile.hpp"

namespace holt {

/// Instruction, settings and tool-availability records are dropped; retry feedback becomes system or user
/// text; request-scoped system prompts stay only in the current request, at its end; later system prompts
/// become `<system>` user text unless the profile has supports_inline_system_prompts; tool results are put in
/// the order of their calls; tool call ids are shortened where the profile wants a length; a compaction in a
/// request becomes user text. Takes a copy, throws nothing of its own.
MessageHistory prepare_messages(MessageHistory history, const ModelProfile& profile);

/// A tool call id of exactly `length` ASCII letters and digits, made from any id. `salt` above 0 gives
/// another one, for clashes.
std::string short_tool_call_id(const std::string& id, std::size_t length, int salt);

}  // namespace holt
