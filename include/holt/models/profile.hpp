// What a model can do and how its provider wants to be spoken to: data by model id, not code per model.
#pragma once

#include "holt/base/json.hpp"

#include <string>

namespace holt {

/// A set of named facts with defaults (docs/reference.md, "Model profiles"). A value.
class ModelProfile {
 public:
  ModelProfile() = default;
  explicit ModelProfile(Json values) : values_(std::move(values)) {}

  bool flag(const std::string& name, bool fallback = false) const;
  std::string text(const std::string& name, const std::string& fallback = {}) const;
  Json value(const std::string& name) const;  ///< null when not given

 private:
  Json values_ = Json::object();
};

}  // namespace holt
