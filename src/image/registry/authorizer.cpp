#include "image/registry/authorizer.hpp"

#include "holt/base/encoding.hpp"
#include "holt/base/json.hpp"
#include "holt/base/retry_after.hpp"
#include "image/registry/credentials.hpp"
#include "image/registry/refusal.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace holt::image {
namespace {

constexpr std::size_t k_token_body = std::size_t{1} << 20;
constexpr std::size_t k_token_bytes = std::size_t{64} << 10;
constexpr std::string_view k_withheld = "***";
constexpr const char* k_client_id = "holt";
constexpr const char* k_log_in =
    "Log in with podman, skopeo or docker login, or name a file of credentials with --auth-file.";

/// What may stand in a header behind "Bearer " (RFC 6750, 2.1), and in nothing but it.
bool is_token(const std::string& text) {
  return !text.empty() && text.size() <= k_token_bytes &&
         std::ranges::all_of(text, [](unsigned char c) { return c > ' ' && c < 0x7f; });
}

std::string token_of(const std::string& body) {
  auto json = parse_json(body);
  if (!json || !json->is_object()) return {};
  for (const char* key : {"token", "access_token"}) {
    auto it = json->find(key);
    if (it != json->end() && it->is_string() && is_token(it->get<std::string>()))
      return it->get<std::string>();
  }
  return {};
}

std::string basic_value(const Credentials& credentials) {
  return "Basic " + base64_encode(credentials.user + ":" + credentials.password, Base64Alphabet::standard);
}

/// The one to be answered: Bearer before Basic.
const Challenge* choose(const std::vector<Challenge>& challenges) {
  for (const char* scheme : {"bearer", "basic"}) {
    auto it = std::ranges::find(challenges, scheme, &Challenge::scheme);
    if (it != challenges.end()) return &*it;
  }
  return nullptr;
}

}  // namespace

Authorizer::Authorizer(std::string registry, std::string repository, const RegistryOptions& options,
                       const Surroundings& surroundings, std::optional<CancellationToken> cancel)
    : registry_(std::move(registry)),
      repository_(std::move(repository)),
      options_(options),
      surroundings_(surroundings),
      cancel_(std::move(cancel)),
      hint_(k_log_in) {}

void Authorizer::refuse(const std::string& reason) const {
  throw Error(ErrorCode::unauthorized, fmt::format("log in to {} for {}: {}", registry_, repository_, reason),
              {.subject = registry_, .hint = hint_});
}

std::string Authorizer::hint() {
  std::lock_guard lock(mutex_);
  return hint_;
}

std::string Authorizer::without_secrets(std::string text) {
  std::lock_guard lock(mutex_);
  return scrubbed(std::move(text));
}

std::string Authorizer::scrubbed(std::string text) const {
  std::vector<std::string> secrets = {current_.substr(std::min(current_.find(' ') + 1, current_.size()))};
  if (credentials_) {
    for (const auto& secret : {credentials_->password, credentials_->identity_token}) {
      secrets.push_back(secret);
      secrets.push_back(url_encode(secret));
    }
    secrets.push_back(basic_value(*credentials_).substr(std::string_view("Basic ").size()));
  }
  for (const auto& secret : secrets) {
    if (secret.empty()) continue;
    for (auto at = text.find(secret); at != std::string::npos; at = text.find(secret, at)) {
      text.replace(at, secret.size(), k_withheld);
      at += k_withheld.size();
    }
  }
  return text;
}

std::string Authorizer::current() {
  std::lock_guard lock(mutex_);
  return current_;
}

const std::optional<Credentials>& Authorizer::credentials() {
  if (!looked_up_) credentials_ = find_credentials(registry_, repository_, options_, surroundings_, cancel_);
  looked_up_ = true;
  return credentials_;
}

std::string Authorizer::renew(const HttpHead& head, const std::string& used, SafeHttp& http,
                              const Url& home) {
  std::lock_guard lock(mutex_);
  if (current_ != used) return current_;  // another thread was faster
  auto challenges = parse_challenges(head.header("www-authenticate"));
  const auto* challenge = choose(challenges);
  if (challenge == nullptr) refuse("it does not say how (neither Bearer nor Basic)");
  current_ = challenge->scheme == "bearer" ? bearer(*challenge, http, home) : basic(*challenge, used);
  return current_;
}

std::string Authorizer::basic(const Challenge&, const std::string& used) {
  const auto& known = credentials();
  if (!known || known->password.empty()) refuse("it wants user and password, and none are known");
  auto value = basic_value(*known);
  if (value == used) refuse("user and password were not accepted");
  return value;
}

HttpRequest Authorizer::token_request(const Challenge& challenge, Url realm,
                                      const Credentials* credentials) const {
  std::string service = challenge.parameter("service");
  std::string scope = challenge.parameter("scope");
  if (scope.empty()) scope = fmt::format("repository:{}:pull", repository_);
  if (credentials != nullptr && !credentials->identity_token.empty()) {
    std::string form = "grant_type=refresh_token&client_id=" + url_encode(k_client_id);
    for (const auto& [name, value] : {std::pair<const char*, const std::string&>("service", service),
                                      {"scope", scope},
                                      {"refresh_token", credentials->identity_token}}) {
      form += fmt::format("&{}={}", name, url_encode(value));
    }
    return {.url = std::move(realm), .headers = {{"Accept", "application/json"}}, .form = std::move(form)};
  }
  if (!service.empty()) realm.add_parameter("service", service);
  realm.add_parameter("scope", scope);
  HttpRequest request{.url = std::move(realm), .headers = {{"Accept", "application/json"}}};
  if (credentials != nullptr) request.headers.emplace_back("Authorization", basic_value(*credentials));
  return request;
}

std::string Authorizer::bearer(const Challenge& challenge, SafeHttp& http, const Url& home) {
  auto realm = parse_url(challenge.parameter("realm"));
  if (!realm) refuse("the URL of its token server is not taken: " + realm.error());
  if (home.is_secure() && !realm->is_secure()) {
    refuse(fmt::format("it names a token server by plain http, {}", realm->shown()));
  }
  const auto& known = credentials();
  bool same_site = is_same_site(*realm, home);
  if (known && !same_site) {
    hint_ = fmt::format("{} is not of this registry's site, so your credentials were not sent to it.",
                        realm->origin());
  }

  std::string body;
  bool too_long = false;
  auto answer = http.send(token_request(challenge, *realm, known && same_site ? &*known : nullptr), home,
                          {.on_body = [&](std::string_view piece) {
                            too_long = body.size() + piece.size() > k_token_body;
                            if (!too_long) body += piece;
                            return too_long ? HttpHandlers::Next::enough : HttpHandlers::Next::go_on;
                          }});
  std::string what =
      fmt::format("get a token for {} of {} from {}", repository_, registry_, answer.url.origin());
  int status = answer.head.status;
  if (status == 429 || status >= 500) {
    throw Refusal(what, answer.head, scrubbed(body),
                  retry_after_seconds(answer.head.headers, surroundings_.now()));
  }
  if (status != 200) {
    std::string words = error_words(scrubbed(body));
    refuse(fmt::format("{} answered {}{}", answer.url.origin(), status,
                       words.empty() ? "" : ", \"" + words + "\""));
  }
  if (too_long) refuse(fmt::format("the answer of {} is longer than 1 MiB", answer.url.origin()));
  auto token = token_of(body);
  if (token.empty())
    refuse(fmt::format("the answer of {} holds no token that can be used", answer.url.origin()));
  return "Bearer " + token;
}

}  // namespace holt::image
