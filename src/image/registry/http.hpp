// One HTTP exchange at a time, blocking, by libcurl: no redirects, no retries, no authorization of its own.
//
//   HttpSession session({.idle_timeout = 30s, .cancel = token});
//   HttpHead head = session.send({.url = url}, {.on_body = [&](std::string_view piece) { ... }});
#pragma once

#include "holt/base/cancellation.hpp"
#include "holt/base/deadline.hpp"
#include "holt/base/error.hpp"
#include "image/registry/url.hpp"

#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <sys/socket.h>
#include <utility>
#include <vector>

namespace holt::image {

struct HttpRequest {
  Url url;
  std::vector<std::pair<std::string, std::string>> headers = {};
  std::optional<std::string> form = std::nullopt;  ///< makes it a POST of this body
  std::string proxy = {};                          ///< empty: none
};

/// Status and headers: names in lower case, repeated ones joined by ", " (RFC 9110, 5.3).
struct HttpHead {
  int status = 0;
  std::map<std::string, std::string> headers = {};

  /// Empty when it is not there.
  std::string_view header(const std::string& name) const;
  /// The body says by itself where it ends, so an early end is no broken connection.
  bool is_delimited() const;
};

struct HttpHandlers {
  enum class Next { go_on, enough };
  /// Called once, before the body. `enough` ends the exchange at once, as a success, here and below. What a
  /// handler throws ends it too and is thrown by send().
  std::function<Next(const HttpHead&)> on_head = {};
  std::function<Next(std::string_view)> on_body = {};
  /// Why an address is not to be connected to; nothing when it is.
  std::function<std::optional<std::string>(const sockaddr&)> refuse_address = {};
};

/// NETWORK_ERROR, and where it went wrong.
class TransferError : public Error {
 public:
  enum class Kind {
    unreachable,  ///< no address, no connection
    not_tls,      ///< the other side does not speak it
    untrusted,    ///< its certificate is not good
    broken,       ///< it began and did not end
    silent,       ///< no progress for too long
    refused,      ///< by refuse_address
  };
  TransferError(Kind kind, const std::string& message, ErrorDetails details = {})
      : Error(ErrorCode::network_error, message, std::move(details)), kind_(kind) {}
  Kind kind() const { return kind_; }

 private:
  Kind kind_;
};

struct HttpOptions {
  bool verify = true;                                           ///< certificates
  std::optional<std::filesystem::path> ca_file = std::nullopt;  ///< trusted beside the system's
  Duration connect_timeout = std::chrono::seconds(10);          ///< name, connection and TLS
  /// Of less than k_progress_bytes. The time that handlers take does not count.
  Duration idle_timeout = std::chrono::seconds(30);
  std::optional<CancellationToken> cancel = std::nullopt;
};

/// A stream slower than this an idle_timeout never ends.
inline constexpr std::size_t k_progress_bytes = 1024;

/// Keeps connections open between exchanges. One thread at a time.
class HttpSession {
 public:
  explicit HttpSession(const HttpOptions& options);
  ~HttpSession();
  HttpSession(const HttpSession&) = delete;
  HttpSession& operator=(const HttpSession&) = delete;

  /// Throws TransferError, Error CANCELLED, what a handler throws.
  HttpHead send(const HttpRequest& request, const HttpHandlers& handlers);

 private:
  struct Handles;
  HttpOptions options_;
  std::unique_ptr<Handles> handles_;
};

}  // namespace holt::image
