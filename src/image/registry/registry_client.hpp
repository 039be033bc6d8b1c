// GET at one registry, or at a mirror of it: finds its address, answers its challenges, names its refusals.
#pragma once

#include "image/registry/authorizer.hpp"
#include "image/registry/safe_http.hpp"

#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace holt::image {

/// Where a repository is.
struct Endpoint {
  std::string registry;                    ///< HOST[:PORT], the key of its credentials
  std::string repository;                  ///< path there
  std::optional<Url> base = std::nullopt;  ///< of a mirror: its "/v2/" stands below. None: that of `registry`
};

/// The endpoint of a mirror's base URL. Throws Error INVALID_CONFIG for one that is none.
Endpoint mirror_endpoint(const std::string& base, const std::string& repository);

/// Thread-safe.
class RegistryClient {
 public:
  RegistryClient(Endpoint endpoint, const RegistryOptions& options, const Surroundings& surroundings,
                 const std::optional<CancellationToken>& cancel);

  struct Get {
    std::string what;  ///< for messages: "the manifest of app:1"
    std::string path;  ///< below /v2/REPOSITORY/
    std::vector<std::pair<std::string, std::string>> headers = {};
    std::function<void(const HttpHead&)> on_head = {};   ///< of a 2xx, before its body
    std::function<void(std::string_view)> on_body = {};  ///< of a 2xx
  };
  /// The head of a 2xx answer. One authorization a call: the second 401 is final. Throws Refusal,
  /// TransferError, Error UNAUTHORIZED, CANCELLED, what a handler throws.
  HttpHead get(const Get& request);

  const std::string& registry() const { return endpoint_.registry; }

 private:
  Url home();
  Url find_home();
  [[noreturn]] void throw_refusal(const Get& request, const SafeHttp::Answer& answer, std::string_view body);

  Endpoint endpoint_;
  bool insecure_;
  Surroundings surroundings_;
  SafeHttp http_;
  Authorizer authorizer_;
  std::mutex mutex_;
  std::optional<Url> home_;
};

}  // namespace holt::image
