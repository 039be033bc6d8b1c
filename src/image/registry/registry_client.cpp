#include "image/registry/registry_client.hpp"

#include "holt/base/retry_after.hpp"
#include "image/registry/refusal.hpp"

#include <fmt/format.h>

namespace holt::image {
namespace {

constexpr int k_unauthorized = 401;
constexpr std::string_view k_docker_hub = "docker.io";
constexpr std::string_view k_docker_hub_host = "registry-1.docker.io";

bool is_success(int status) {
  return status >= 200 && status < 300;
}

}  // namespace

Endpoint mirror_endpoint(const std::string& base, const std::string& repository) {
  auto url = parse_url(base);
  if (!url || !url->query.empty()) {
    throw Error(ErrorCode::invalid_config, fmt::format("use a registry mirror: its base URL is not taken, {}",
                                                       url ? std::string("it has a query") : url.error()));
  }
  while (url->path.ends_with('/')) url->path.pop_back();
  bool usual = url->port == (url->is_secure() ? 443U : 80U);
  return {.registry = usual ? url->host : fmt::format("{}:{}", url->host, url->port),
          .repository = repository,
          .base = std::move(*url)};
}

RegistryClient::RegistryClient(Endpoint endpoint, const RegistryOptions& options,
                               const Surroundings& surroundings,
                               const std::optional<CancellationToken>& cancel)
    : endpoint_(std::move(endpoint)),
      insecure_(options.insecure),
      surroundings_(surroundings),
      http_(options, surroundings, cancel),
      authorizer_(endpoint_.registry, endpoint_.repository, options, surroundings, cancel) {}

Url RegistryClient::home() {
  std::lock_guard lock(mutex_);
  if (!home_) home_ = find_home();
  return *home_;
}

/// https, and where http would do too, whichever answers.
Url RegistryClient::find_home() {
  if (endpoint_.base) return *endpoint_.base;
  std::string host(endpoint_.registry == k_docker_hub ? k_docker_hub_host : endpoint_.registry);
  auto secure = parse_url("https://" + host);
  auto plain = parse_url("http://" + host);
  if (!secure || !plain) {
    throw Error(ErrorCode::usage, fmt::format("use the registry {}: this is no host", printable(host, 300)));
  }
  secure->path.clear();
  plain->path.clear();
  if (!insecure_ && !is_loopback_name(secure->host)) return *secure;
  Url probe = *secure;
  probe.path = "/v2/";
  try {
    http_.send({.url = probe}, *secure, {.on_head = [](const auto&) { return HttpHandlers::Next::enough; }});
  } catch (const TransferError& error) {
    bool may_be_plain =
        error.kind() == TransferError::Kind::not_tls || error.kind() == TransferError::Kind::unreachable;
    return may_be_plain ? *plain : *secure;
  }
  return *secure;
}

HttpHead RegistryClient::get(const Get& request) {
  try {
    Url root = home();
    Url url = root;
    url.path += fmt::format("/v2/{}/{}", endpoint_.repository, request.path);
    auto authorization = authorizer_.current();
    for (bool renewed = false;; renewed = true) {
      HttpRequest message{.url = url, .headers = request.headers};
      if (!authorization.empty()) message.headers.emplace_back("Authorization", authorization);
      std::string words;
      bool good = false;
      auto answer = http_.send(std::move(message), root,
                               {.on_head =
                                    [&](const SafeHttp::Answer& begun) {
                                      good = is_success(begun.head.status);
                                      if (good && request.on_head) request.on_head(begun.head);
                                      return HttpHandlers::Next::go_on;
                                    },
                                .on_body =
                                    [&](std::string_view piece) {
                                      if (good) {
                                        if (request.on_body) request.on_body(piece);
                                        return HttpHandlers::Next::go_on;
                                      }
                                      words += piece.substr(0, k_error_body_bytes - words.size());
                                      return words.size() == k_error_body_bytes ? HttpHandlers::Next::enough
                                                                                : HttpHandlers::Next::go_on;
                                    }});
      if (good) return std::move(answer.head);
      bool may_renew =
          answer.head.status == k_unauthorized && !renewed && answer.url.origin() == root.origin();
      if (!may_renew) throw_refusal(request, answer, words);
      authorization = authorizer_.renew(answer.head, authorization, http_, root);
    }
  } catch (const TransferError& error) {
    throw TransferError(error.kind(),
                        fmt::format("fetch {} from {}: {}", request.what, endpoint_.registry, error.what()),
                        {.subject = endpoint_.registry, .hint = error.hint(), .retryable = true});
  }
}

void RegistryClient::throw_refusal(const Get& request, const SafeHttp::Answer& answer,
                                   std::string_view body) {
  ErrorDetails details{.subject = endpoint_.registry};
  if (answer.head.status == k_unauthorized || answer.head.status == 403) details.hint = authorizer_.hint();
  throw Refusal(fmt::format("fetch {} from {}", request.what, endpoint_.registry), answer.head,
                authorizer_.without_secrets(std::string(body)),
                retry_after_seconds(answer.head.headers, surroundings_.now()), std::move(details));
}

}  // namespace holt::image
