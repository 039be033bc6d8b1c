#include "models/model_ids.hpp"

#include "holt/base/error.hpp"
#include "holt/models/anthropic.hpp"
#include "holt/models/model.hpp"
#include "holt/models/test_model.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <string>
#include <vector>

#include <fmt/format.h>

namespace holt {
namespace {

struct Family {
  std::string_view provider;
  std::vector<std::string_view> names;
};

/// Alphabetical by provider, so that a name that several have is suggested for the first of them.
const std::vector<Family>& families() {
  static const std::vector<std::string_view> gemini{
      "gemini-2.0-flash", "gemini-2.5-flash",     "gemini-2.5-flash-lite",  "gemini-2.5-pro",
      "gemini-3.7-flash", "gemini-3-pro-preview", "gemini-3-flash-preview", "gemini-3.1-pro-preview"};
  static const std::vector<std::string_view> gpt{
      "gpt-4",   "gpt-4o",  "gpt-4o-mini", "gpt-4.1",    "o1",         "o3",      "o3-mini",
      "o4-mini", "gpt-5",   "gpt-5-mini",  "gpt-5-nano", "gpt-5.1",    "gpt-5.2", "gpt-5.4",
      "gpt-5.5", "gpt-5.6", "gpt-5-codex", "gpt-6-sol",  "gpt-6.1-sol"};
  static const std::vector<Family> all{
      {"anthropic",
       {"claude-3-5-haiku-latest", "claude-3-7-sonnet-latest", "claude-sonnet-4-0", "claude-opus-4-0",
        "claude-opus-4-1", "claude-sonnet-4-5", "claude-haiku-4-5", "claude-opus-4-5", "claude-sonnet-4-6",
        "claude-opus-4-6", "claude-opus-4-7", "claude-opus-4-8", "claude-opus-5", "claude-opus-5-5",
        "claude-sonnet-5", "claude-sonnet-5-5", "claude-haiku-5-5", "claude-fable-5", "claude-mythos-5"}},
      {"google-cloud", gemini},
      {"google", gemini},
      {"openai-chat", gpt},
      {"openai", gpt},
  };
  return all;
}

/// Levenshtein's distance.
std::size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t j = 0; j < row.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0]++;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      std::size_t replaced = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({replaced, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row.back();
}

/// A known provider that has exactly this name.
std::optional<std::string> other_provider_of(std::string_view name) {
  for (const auto& family : families()) {
    if (std::find(family.names.begin(), family.names.end(), name) != family.names.end()) {
      return fmt::format("{}:{}", family.provider, name);
    }
  }
  return std::nullopt;
}

/// Providers that were renamed.
std::optional<std::string> renamed(const ModelId& id) {
  if (id.provider == "google-gla") return "google:" + id.name;
  if (id.provider == "google-vertex") return "google-cloud:" + id.name;
  return std::nullopt;
}

[[noreturn]] void throw_unknown(std::string_view id) {
  auto parts = split_model_id(id);
  auto near = renamed(parts);
  if (!near) near = other_provider_of(parts.name);
  if (!near) near = near_model_id(id);
  throw UserError(fmt::format("Unknown model: {}{}", printable(id, 200),
                              near ? fmt::format(". Did you mean '{}'?", *near) : ""));
}

std::string need_key(const EnvironmentLookup& environment, const char* service, const char* variable,
                     const char* provider) {
  auto key = environment(variable);
  if (key && !key->empty()) return *key;
  throw UserError(
      fmt::format("No API key for {}: set `{}`, or pass `{}(api_key=...)`. Only the model `test` works "
                  "without a key.",
                  service, variable, provider));
}

ModelPtr make_anthropic(const std::string& name, const EnvironmentLookup& environment) {
  AnthropicOptions options{
      .api_key = need_key(environment, "the Anthropic provider", "ANTHROPIC_API_KEY", "AnthropicProvider")};
  auto base = environment("ANTHROPIC_BASE_URL");
  if (base && !base->empty()) options.base_url = *base;
  return make_anthropic_model(name, std::move(options));
}

bool comes_later(std::string_view provider) {
  constexpr std::array<std::string_view, 7> k_providers{"openai", "openai-responses", "openai-chat", "ollama",
                                                        "vllm",   "google",           "google-cloud"};
  return std::find(k_providers.begin(), k_providers.end(), provider) != k_providers.end();
}

}  // namespace

std::optional<std::string> near_model_id(std::string_view id) {
  constexpr std::size_t k_far = 4;
  constexpr std::size_t k_longest = 200;
  if (id.size() > k_longest) return std::nullopt;
  std::optional<std::string> best;
  std::size_t best_distance = std::min(k_far, id.size() / 3);
  for (const auto& family : families()) {
    for (auto name : family.names) {
      auto known = fmt::format("{}:{}", family.provider, name);
      auto far = distance(id, known);
      if (far == 0) return std::nullopt;
      if (far < best_distance) {
        best_distance = far;
        best = known;
      }
    }
  }
  return best;
}

ModelId split_model_id(std::string_view id) {
  auto colon = id.find(':');
  if (colon == std::string_view::npos) return {.provider = std::nullopt, .name = std::string(id)};
  return {.provider = std::string(id.substr(0, colon)), .name = std::string(id.substr(colon + 1))};
}

ModelPtr make_model(const std::string& id, const EnvironmentLookup& environment) {
  auto parts = split_model_id(id);
  if (!parts.provider && parts.name == "test") return make_test_model();
  if (parts.provider == "anthropic") return make_anthropic(parts.name, environment);
  if (parts.provider && comes_later(*parts.provider)) {
    throw UserError(
        fmt::format("Model '{}': the provider {} comes with a later release; this one speaks to "
                    "`anthropic:` and `test`",
                    printable(id, 200), *parts.provider));
  }
  throw_unknown(id);
}

ModelPtr make_model(const std::string& id) {
  return make_model(id, [](const std::string& name) -> std::optional<std::string> {
    const char* value = std::getenv(name.c_str());
    if (!value) return std::nullopt;
    return std::string(value);
  });
}

}  // namespace holt
