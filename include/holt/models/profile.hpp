// What a model can do and how its provider wants to be spoken to: data by model id, not code per model.
//
//   auto profile = holt::profile_for("anthropic", "claude-sonnet-4-5");
//   if (profile.flag("supports_thinking")) ...
//
// Depends on base/.
#pragma once

#include "holt/base/json.hpp"

#include <string>
#include <string_view>

namespace holt {

/// A set of named facts with defaults (docs/reference.md, "Model profiles"). A value.
class ModelProfile {
 public:
  ModelProfile() = default;
  /// The defaults, overlaid with `values`.
  explicit ModelProfile(Json values) : values_(std::move(values)) {}

  bool flag(const std::string& name, bool fallback = false) const;
  std::string text(const std::string& name, const std::string& fallback = {}) const;
  /// The value, else the default that all models share, else null.
  Json value(const std::string& name) const;

 private:
  Json values_ = Json::object();
};

/// The profile of a provider's model, by the longest known prefixes of its name. An unknown model gets the
/// provider's own defaults.
ModelProfile profile_for(std::string_view provider, std::string_view model_name);

}  // namespace holt
