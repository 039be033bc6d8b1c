// Which tools a request offers and whether one must be called, without regard to the provider.
#pragma once

#include "holt/models/model.hpp"

#include <string>
#include <vector>

namespace holt {

struct ResolvedToolChoice {
  enum class Mode { automatic, none, required } mode = Mode::automatic;
  /// Only these tools; empty: all.
  std::vector<std::string> names = {};
};

/// `setting`: null, "auto", "none", "required", a list of tool names, or {"function_tools": [names]} (these
/// function tools, and the output). Throws UserError for "required" without function tools, for names none of
/// which is known, for anything else.
ResolvedToolChoice resolve_tool_choice(const Json& setting, const ModelRequestParameters& parameters);

}  // namespace holt
