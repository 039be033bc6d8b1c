#include "image/registry/safe_http.hpp"

#include "image/registry/proxy.hpp"

#include <algorithm>
#include <arpa/inet.h>
#include <array>
#include <cstring>
#include <netinet/in.h>

#include <fmt/format.h>

namespace holt::image {
namespace {

constexpr std::size_t k_ignored_body = std::size_t{64} << 10;

bool is_redirect(int status) {
  constexpr std::array k_statuses = {301, 302, 303, 307, 308};
  return std::ranges::find(k_statuses, status) != k_statuses.end();
}

/// The address that a host's text is by itself; AF_UNSPEC for a name.
sockaddr_storage literal_address(const std::string& host) {
  sockaddr_storage storage{};
  sockaddr_in four{};
  sockaddr_in6 six{};
  if (::inet_pton(AF_INET, host.c_str(), &four.sin_addr) == 1) {
    four.sin_family = AF_INET;
    std::memcpy(&storage, &four, sizeof four);
  } else if (host.starts_with('[') &&
             ::inet_pton(AF_INET6, host.substr(1, host.size() - 2).c_str(), &six.sin6_addr) == 1) {
    six.sin6_family = AF_INET6;
    std::memcpy(&storage, &six, sizeof six);
  }
  return storage;
}

HttpOptions http_options(const RegistryOptions& options, std::optional<CancellationToken> cancel) {
  return {.verify = !options.insecure,
          .ca_file = options.ca_file,
          .connect_timeout = options.connect_timeout,
          .idle_timeout = options.idle_timeout,
          .cancel = std::move(cancel)};
}

[[noreturn]] void refuse(const std::string& reason) {
  throw TransferError(TransferError::Kind::refused, reason);
}

Url redirected(const Url& from, const HttpHead& head) {
  auto location = head.header("location");
  if (location.empty()) refuse(fmt::format("{} answered {} without a Location", from.shown(), head.status));
  auto next = resolve_url(from, location);
  if (!next) refuse(fmt::format("{} redirects to a place that is not taken: {}", from.shown(), next.error()));
  if (from.is_secure() && !next->is_secure()) {
    refuse(fmt::format("{} redirects from https to http, to {}", from.shown(), next->shown()));
  }
  return *next;
}

}  // namespace

/// A session of its own for one exchange.
class SafeHttp::Lease {
 public:
  explicit Lease(SafeHttp& owner) : owner_(owner) {
    std::lock_guard lock(owner.mutex_);
    if (owner.idle_.empty()) {
      session_ = std::make_unique<HttpSession>(http_options(owner.options_, owner.cancel_));
    } else {
      session_ = std::move(owner.idle_.back());
      owner.idle_.pop_back();
    }
  }
  ~Lease() {
    std::lock_guard lock(owner_.mutex_);
    owner_.idle_.push_back(std::move(session_));
  }
  Lease(const Lease&) = delete;
  Lease& operator=(const Lease&) = delete;
  HttpSession& session() { return *session_; }

 private:
  SafeHttp& owner_;
  std::unique_ptr<HttpSession> session_;
};

SafeHttp::SafeHttp(const RegistryOptions& options, const Surroundings& surroundings,
                   std::optional<CancellationToken> cancel)
    : options_(options), surroundings_(surroundings), cancel_(std::move(cancel)) {}

std::optional<std::string> SafeHttp::refuse_address(const Url& url, const Url& home,
                                                    const sockaddr& address) {
  auto kind = surroundings_.address_kind(address);
  if (!url.is_secure() && !options_.insecure && kind != AddressKind::loopback) {
    return fmt::format("{} is not on this machine, and plain http is only for that", url.origin());
  }
  std::lock_guard lock(mutex_);
  if (url.origin() == home.origin()) {
    // A name with a public address beside others is no name of this site.
    if (!home_kind_ || kind == AddressKind::global) home_kind_ = kind;
    return std::nullopt;
  }
  if (may_lead(home_kind_.value_or(AddressKind::global), kind)) return std::nullopt;
  return fmt::format("{} has {} ({}), to which this registry may not lead", url.origin(), describe(kind),
                     address_text(address));
}

/// What a proxy would connect to for us.
void SafeHttp::check_literal(const Url& url, const Url& home) {
  if (!url.is_secure() && !options_.insecure && !is_loopback_name(url.host)) {
    refuse(fmt::format("{} would be plain http, which is only for this machine", url.shown()));
  }
  auto storage = literal_address(url.host);
  if (storage.ss_family == AF_UNSPEC || url.origin() == home.origin()) return;
  if (auto why = refuse_address(url, home, reinterpret_cast<const sockaddr&>(storage))) refuse(*why);
}

HttpHead SafeHttp::send_once(HttpRequest& request, const Url& home, const Handlers& handlers) {
  check_literal(request.url, home);
  request.proxy = proxy_for(request.url, surroundings_.environment);
  Lease lease(*this);
  std::size_t ignored = 0;
  bool redirects = false;
  return lease.session().send(
      request, {.on_head =
                    [&](const HttpHead& head) {
                      redirects = is_redirect(head.status);
                      if (redirects || !handlers.on_head) return HttpHandlers::Next::go_on;
                      return handlers.on_head({.head = head, .url = request.url});
                    },
                .on_body =
                    [&](std::string_view piece) {
                      if (!redirects && handlers.on_body) return handlers.on_body(piece);
                      // A short body is read to its end, so that the connection can be used again.
                      ignored += piece.size();
                      return ignored > k_ignored_body ? HttpHandlers::Next::enough
                                                      : HttpHandlers::Next::go_on;
                    },
                .refuse_address = [&](const sockaddr& address) -> std::optional<std::string> {
                  // The proxy's address is the user's choice.
                  return request.proxy.empty() ? refuse_address(request.url, home, address) : std::nullopt;
                }});
}

SafeHttp::Answer SafeHttp::send(HttpRequest request, const Url& home, const Handlers& handlers) {
  for (int redirects = 0;; ++redirects) {
    auto head = send_once(request, home, handlers);
    if (!is_redirect(head.status)) return {.head = std::move(head), .url = std::move(request.url)};
    if (request.form) refuse(fmt::format("{} redirects a request that holds a secret", request.url.shown()));
    auto next = redirected(request.url, head);
    if (redirects == k_redirects) {
      refuse(fmt::format("more than {} redirects, the last to {}", k_redirects, next.shown()));
    }
    if (next.origin() != request.url.origin()) {
      std::erase_if(request.headers, [](const auto& header) { return header.first == "Authorization"; });
    }
    request.url = std::move(next);
  }
}

}  // namespace holt::image
