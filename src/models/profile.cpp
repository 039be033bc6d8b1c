#include "holt/models/profile.hpp"

#include "models/profile_rules.hpp"

namespace holt {

Json ModelProfile::value(const std::string& name) const {
  if (auto it = values_.find(name); it != values_.end()) return *it;
  const auto& common = profile_rules::common();
  if (auto it = common.find(name); it != common.end()) return *it;
  return nullptr;
}

bool ModelProfile::flag(const std::string& name, bool fallback) const {
  auto found = value(name);
  return found.is_boolean() ? found.get<bool>() : fallback;
}

std::string ModelProfile::text(const std::string& name, const std::string& fallback) const {
  auto found = value(name);
  return found.is_string() ? found.get<std::string>() : fallback;
}

ModelProfile profile_for(std::string_view provider, std::string_view model_name) {
  Json values = profile_rules::of_provider(provider);
  const profile_rules::Rule* best = nullptr;
  for (const auto& rule : profile_rules::rules(provider)) {
    if (model_name.starts_with(rule.prefix) && (!best || rule.prefix.size() > best->prefix.size())) {
      best = &rule;
    }
  }
  if (best) {
    for (auto name : best->traits) values.update(profile_rules::trait(name));
  }
  return ModelProfile(std::move(values));
}

}  // namespace holt
