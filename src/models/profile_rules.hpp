// The profiles as data: what every model is taken to be, and per provider what a name's prefix adds.
#pragma once

#include "holt/base/json.hpp"

#include <span>
#include <string_view>
#include <vector>

namespace holt::profile_rules {

/// Names of traits that a model whose name starts with `prefix` has. The longest prefix counts.
struct Rule {
  std::string_view prefix;
  std::vector<std::string_view> traits;
};

/// Defaults of all models.
const Json& common();
/// What all models of a provider share; an empty object for an unknown provider.
const Json& of_provider(std::string_view provider);
/// The rules of a provider.
std::span<const Rule> rules(std::string_view provider);
/// The values that a trait sets.
const Json& trait(std::string_view name);

}  // namespace holt::profile_rules
