// HTTP for a registry: redirects are followed, and neither they nor anything else it names leads where it may
// not lead.
//
//   * Authorization goes to the scheme, host and port it was made for, never along with a redirect elsewhere;
//   * https never becomes http; http is for this machine only, unless the user said `insecure`;
//   * loopback, private and link-local addresses are for a registry that is at one itself. The address looked
//     at is the one that is being connected to, so a name that resolves differently each time gains nothing;
//   * at most 10 redirects; a POST follows none.
#pragma once

#include "holt/image/pull.hpp"
#include "image/registry/http.hpp"
#include "image/registry/surroundings.hpp"

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace holt::image {

inline constexpr int k_redirects = 10;

/// Thread-safe: each exchange has a connection of its own.
class SafeHttp {
 public:
  SafeHttp(const RegistryOptions& options, const Surroundings& surroundings,
           std::optional<CancellationToken> cancel);

  struct Answer {
    HttpHead head;
    Url url;  ///< that answered
  };
  struct Handlers {
    /// Called once, of the answer that is no redirect.
    std::function<HttpHandlers::Next(const Answer&)> on_head = {};
    std::function<HttpHandlers::Next(std::string_view)> on_body = {};
  };
  /// `home` is the registry: its own address is the user's choice, all others are not. Throws TransferError
  /// (a URL in it is without its query), Error CANCELLED, what a handler throws.
  Answer send(HttpRequest request, const Url& home, const Handlers& handlers);

 private:
  class Lease;
  HttpHead send_once(HttpRequest& request, const Url& home, const Handlers& handlers);
  std::optional<std::string> refuse_address(const Url& url, const Url& home, const sockaddr& address);
  void check_literal(const Url& url, const Url& home);

  RegistryOptions options_;
  Surroundings surroundings_;
  std::optional<CancellationToken> cancel_;
  std::mutex mutex_;
  std::optional<AddressKind> home_kind_;  // none before the first connection, none by a proxy
  std::vector<std::unique_ptr<HttpSession>> idle_;
};

}  // namespace holt::image
