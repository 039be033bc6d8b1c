// Anthropic's Messages API.
//
//   auto model = holt::make_anthropic_model("claude-sonnet-4-5", {.api_key = key});
//
// Depends on model.hpp. The key goes into one request header and nowhere else.
#pragma once

#include "holt/base/deadline.hpp"
#include "holt/base/time.hpp"
#include "holt/models/model.hpp"

#include <functional>
#include <optional>
#include <string>

namespace holt {

/// What waits between retries, and what time it is; tests bring their own.
struct ModelClock {
  std::function<Task<void>(Duration)> sleep = [](Duration duration) { return sleep_for(duration); };
  std::function<WallTime()> now = [] { return wall_now(); };
};

struct AnthropicOptions {
  std::string api_key;
  std::string base_url = "https://api.anthropic.com";  ///< "/v1/messages" is appended
  ModelSettings settings = Json::object();
  std::optional<ModelProfile> profile = std::nullopt;  ///< none: by the model's name
  ModelClock clock = {};
};

/// A model of that API. Thread-safe as every Model. Throws UserError for an empty key.
ModelPtr make_anthropic_model(std::string model_name, AnthropicOptions options);

}  // namespace holt
