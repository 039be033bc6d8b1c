// HTTP requests to model providers: libcurl's multi interface on the awaiter's Asio executor.
//
//   holt::HttpClient client;
//   auto head = co_await client.send(request, {.on_body = [&](std::string_view piece) { ... }});
//
// Redirects are not followed: a request carries a key. Proxies as the environment says (http_proxy,
// https_proxy, no_proxy), never for the loopback.
#pragma once

#include "holt/base/deadline.hpp"
#include "holt/base/error.hpp"
#include "holt/base/task.hpp"
#include "holt/models/errors.hpp"

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace holt {

struct HttpRequest {
  std::string method = "POST";
  std::string url;  ///< http or https
  std::vector<std::pair<std::string, std::string>> headers = {};
  std::string body = {};
  Duration connect_timeout = std::chrono::seconds(5);
  Duration idle_timeout = std::chrono::seconds(600);  ///< without a single byte, ping or not
  Deadline deadline = Deadline::never();              ///< of the whole exchange
};

/// Status and headers (names in lower case; of repeated ones the last).
struct HttpHead {
  int status = 0;
  std::map<std::string, std::string> headers = {};
};

struct HttpHandlers {
  enum class Next { go_on, enough };
  /// Called once, before the body.
  std::function<void(const HttpHead&)> on_head = {};
  /// Called for each piece of the body. `enough` ends the exchange at once, as a success. What either throws
  /// ends it and is thrown by send().
  std::function<Next(std::string_view)> on_body = {};
};

/// The exchange failed below HTTP: no connection, a broken one, silence.
class HttpTransportError : public Error {
 public:
  enum class Kind { connection, timeout, deadline };
  HttpTransportError(const std::string& message, Kind kind, ConnectionPhase phase)
      : Error(kind == Kind::connection ? ErrorCode::network_error : ErrorCode::timeout, message),
        kind_(kind),
        phase_(phase) {}
  Kind kind() const { return kind_; }
  ConnectionPhase phase() const { return phase_; }

 private:
  Kind kind_;
  ConnectionPhase phase_;
};

/// Keeps connections open between requests. Thread-safe; requests on different executors do not meet.
class HttpClient {
 public:
  HttpClient();
  ~HttpClient();
  HttpClient(const HttpClient&) = delete;
  HttpClient& operator=(const HttpClient&) = delete;

  /// One exchange. Handlers run on the awaiting coroutine's executor. Throws HttpTransportError, Error
  /// CANCELLED (the connection is closed at once), UserError for an URL or a header that cannot be sent.
  Task<HttpHead> send(HttpRequest request, HttpHandlers handlers);

 private:
  class Pool;
  std::shared_ptr<Pool> pool_;
};

}  // namespace holt
