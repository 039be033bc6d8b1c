// Tokens and passwords for one repository of one registry.
#pragma once

#include "image/registry/challenge.hpp"
#include "image/registry/safe_http.hpp"

#include <mutex>
#include <optional>
#include <string>

namespace holt::image {

/// Answers a registry's challenges: Bearer by the token server that it names (GET, or POST of OAuth2 with an
/// identity token), else Basic. Keeps what it got. Thread-safe; one thread asks, the others wait.
/// A token server gets user and password only on the registry's own site (is_same_site()), and never by http
/// from a registry that is reached by https. Elsewhere a token is asked for without them.
/// Source: Docker registry's token authentication; RFC 6749, 6; RFC 6750.
class Authorizer {
 public:
  /// `registry` and `repository` are those of the reference.
  Authorizer(std::string registry, std::string repository, const RegistryOptions& options,
             const Surroundings& surroundings, std::optional<CancellationToken> cancel);

  /// The value of the Authorization header to begin with; empty for none.
  std::string current();
  /// Another one, after `used` was answered by 401. Throws Error UNAUTHORIZED, NETWORK_ERROR, CANCELLED, and
  /// Refusal when the token server wants to be asked later.
  std::string renew(const HttpHead& head, const std::string& used, SafeHttp& http, const Url& home);
  /// A server's text without the secrets that it was sent, should it repeat them.
  std::string without_secrets(std::string text);
  /// What the user can do when the registry says no.
  std::string hint();

 private:
  const std::optional<Credentials>& credentials();
  std::string basic(const Challenge& challenge, const std::string& used);
  std::string bearer(const Challenge& challenge, SafeHttp& http, const Url& home);
  HttpRequest token_request(const Challenge& challenge, Url realm, const Credentials* credentials) const;
  std::string scrubbed(std::string text) const;
  [[noreturn]] void refuse(const std::string& reason) const;

  std::string registry_;
  std::string repository_;
  RegistryOptions options_;
  Surroundings surroundings_;
  std::optional<CancellationToken> cancel_;

  std::mutex mutex_;
  std::string current_;
  bool looked_up_ = false;
  std::optional<Credentials> credentials_;
  std::string hint_;
};

}  // namespace holt::image
