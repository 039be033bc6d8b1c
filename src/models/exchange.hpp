// One model request over HTTP: retries, time limits, body limits, and errors in holt's words. The same for
// every provider; what the bytes mean is the provider's.
#pragma once

#include "holt/base/json.hpp"
#include "holt/models/model.hpp"
#include "models/http_client.hpp"
#include "models/http_retry.hpp"

#include <functional>
#include <string>
#include <string_view>

namespace holt {

/// How long and how often. From the settings `timeout`, `request_timeout`, `max_retries`.
struct ExchangeLimits {
  Duration connect_timeout = std::chrono::seconds(5);
  Duration idle_timeout = std::chrono::seconds(600);
  std::optional<double> request_timeout = std::nullopt;  ///< seconds, of everything together
  int max_retries = 2;

  /// Throws UserError for a value that is no number above zero (max_retries: a whole number from 0).
  static ExchangeLimits from_settings(const ModelSettings& settings);
};

/// Where the body of a reply with a status below 300 goes.
struct ReplySink {
  /// A new reply begins; what came of an earlier try is void.
  std::function<void(const HttpHead&)> begin = {};
  std::function<void(std::string_view)> piece = {};
};

/// What is tried again after the reply has begun.
enum class ReplyKind {
  whole,     ///< a broken body too
  streamed,  ///< nothing: its pieces were handed out already
};

/// A reply with a status from 300, after the last try.
struct RefusedReply {
  HttpHead head;
  std::string body;  ///< at most 64 KiB
};

/// The model's name in errors: as it was asked for, and as the reply names it so far.
struct ModelNames {
  std::string asked;
  std::function<std::string()> current;
};

/// Sends and fills `sink`; answers the refusal, or nothing after a success. Throws ModelConnectionError,
/// ModelTimeoutError, ModelRequestTimeout, Error CANCELLED, and what `sink` throws.
Task<std::optional<RefusedReply>> exchange(HttpClient& client, const RetryClock& clock, ExchangeLimits limits,
                                           HttpRequest request, ReplyKind kind, ReplySink sink,
                                           ModelNames names);

/// Gathers a body of at most 64 MiB. Throws ModelAPIError above.
class BodyBuffer {
 public:
  void clear() { text_.clear(); }
  void add(std::string_view piece, const std::string& model_name);
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

/// The JSON of a reply. Throws ModelAPIError when it is none: "not JSON" with its first bytes, or where the
/// decoding failed when the reply says that it is JSON.
Json decode_reply(const HttpHead& head, const std::string& body, const std::string& model_name);
/// The JSON of an event. Throws ModelAPIError.
Json decode_event(std::string_view data, const std::string& model_name);
/// A refusal's body as errors carry it: JSON if it is, else text, null when empty.
Json refusal_body(const std::string& body);

}  // namespace holt
