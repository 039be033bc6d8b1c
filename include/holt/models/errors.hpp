// What can go wrong between a program and a model. One tree below holt::Error, as Pydantic AI has it:
//
//   try {
//     auto response = holt::sync_wait(model->request(messages, settings, parameters));
//   } catch (const holt::ModelRateLimitError& e) {        // the category, whatever the transport
//     wait(e.info().retry_after.value_or(1));
//   } catch (const holt::ModelHTTPError& e) {             // any answer with an error status
//     std::cerr << e.status_code() << " " << holt::dump_json(e.info().body) << "\n";
//   } catch (const holt::ModelAPIError& e) {              // everything else on the way
//   }
//
// An error made from an HTTP status is both its category and a ModelHTTPError, so either catch takes it.
// Errors of a whole run that carry its messages (RunCancelled, RunTimedOut) stand in agent/.
// No message holds a key: request headers are never part of an error. Depends on base/.
#pragma once

#include "holt/base/error.hpp"
#include "holt/base/json.hpp"

#include <map>
#include <optional>
#include <string>

namespace holt {

/// The run failed (UserError: the program is wrong).
class AgentRunError : public Error {
 public:
  explicit AgentRunError(const std::string& message, ErrorCode code = ErrorCode::internal)
      : Error(code, message) {}
};

/// A limit of UsageLimits was passed.
class UsageLimitExceeded : public AgentRunError {
 public:
  explicit UsageLimitExceeded(const std::string& message)
      : AgentRunError(message, ErrorCode::limit_exceeded) {}
};

/// More runs at once than allowed.
class ConcurrencyLimitExceeded : public AgentRunError {
 public:
  explicit ConcurrencyLimitExceeded(const std::string& message)
      : AgentRunError(message, ErrorCode::limit_exceeded) {}
};

/// The model answered something that cannot be used. what() is the message, followed by ", body:\n" and the
/// body (re-indented when it is JSON) when there is one.
class UnexpectedModelBehavior : public AgentRunError {
 public:
  explicit UnexpectedModelBehavior(const std::string& message,
                                   std::optional<std::string> body = std::nullopt);
  /// The message without the body.
  const std::string& message() const { return message_; }
  const std::optional<std::string>& body() const { return body_; }

 private:
  std::string message_;
  std::optional<std::string> body_;
};
class ContentFilterError : public UnexpectedModelBehavior {
 public:
  using UnexpectedModelBehavior::UnexpectedModelBehavior;
};
class IncompleteToolCall : public UnexpectedModelBehavior {
 public:
  using UnexpectedModelBehavior::UnexpectedModelBehavior;
};

/// What is known of a failed request.
struct ModelErrorInfo {
  std::string model_name = {};
  Json body = nullptr;  ///< decoded JSON, or the text of at most 64 KiB; null when there was none
  std::optional<std::string> provider_error_code = std::nullopt;
  std::optional<std::string> provider_error_type = std::nullopt;
  std::optional<double> retry_after = std::nullopt;  ///< seconds
  bool in_stream = false;                            ///< the error came inside a reply of status 200
};

/// The API could not be reached or refused. Base of all below; derived virtually, so that an HTTP error can
/// be caught as ModelHTTPError and as its category.
class ModelAPIError : public AgentRunError {
 public:
  ModelAPIError(const std::string& message, ModelErrorInfo info, ErrorCode code = ErrorCode::network_error)
      : AgentRunError(message, code), info_(std::move(info)) {}
  const ModelErrorInfo& info() const { return info_; }

 private:
  ModelErrorInfo info_;
};

// Categories. Each is thrown as it is when there is no HTTP status (some stream errors).

class ModelRateLimitError : public virtual ModelAPIError {
 public:
  ModelRateLimitError(const std::string& message, ModelErrorInfo info)
      : ModelAPIError(message, std::move(info), ErrorCode::limit_exceeded) {}
};
class ModelQuotaExceededError : public virtual ModelAPIError {
 public:
  ModelQuotaExceededError(const std::string& message, ModelErrorInfo info)
      : ModelAPIError(message, std::move(info), ErrorCode::limit_exceeded) {}
};
class ModelUnavailableError : public virtual ModelAPIError {
 public:
  ModelUnavailableError(const std::string& message, ModelErrorInfo info)
      : ModelAPIError(message, std::move(info)) {}
};
class ModelOverloadedError : public ModelUnavailableError {
 public:
  ModelOverloadedError(const std::string& message, const ModelErrorInfo& info)
      : ModelAPIError(message, info), ModelUnavailableError(message, info) {}
};
class ModelServerError : public virtual ModelAPIError {
 public:
  ModelServerError(const std::string& message, ModelErrorInfo info)
      : ModelAPIError(message, std::move(info)) {}
};
class ModelRequestRejectedError : public virtual ModelAPIError {
 public:
  ModelRequestRejectedError(const std::string& message, ModelErrorInfo info)
      : ModelAPIError(message, std::move(info), ErrorCode::invalid_config) {}
};
class ModelContextWindowExceededError : public ModelRequestRejectedError {
 public:
  ModelContextWindowExceededError(const std::string& message, const ModelErrorInfo& info)
      : ModelAPIError(message, info, ErrorCode::limit_exceeded), ModelRequestRejectedError(message, info) {}
};
class ModelAuthenticationError : public ModelRequestRejectedError {
 public:
  ModelAuthenticationError(const std::string& message, const ModelErrorInfo& info)
      : ModelAPIError(message, info, ErrorCode::unauthorized), ModelRequestRejectedError(message, info) {}
};
class ModelNotFoundError : public ModelRequestRejectedError {
 public:
  ModelNotFoundError(const std::string& message, const ModelErrorInfo& info)
      : ModelAPIError(message, info, ErrorCode::not_found), ModelRequestRejectedError(message, info) {}
};

/// Where on the way a connection failed.
enum class ConnectionPhase { connect, read, write, pool };
/// "connect", "read", "write", "pool".
std::string_view to_string(ConnectionPhase phase);

/// The connection could not be made or broke.
class ModelConnectionError : public virtual ModelAPIError {
 public:
  ModelConnectionError(const std::string& message, ModelErrorInfo info, ConnectionPhase phase,
                       ErrorCode code = ErrorCode::network_error)
      : ModelAPIError(message, std::move(info), code), phase_(phase) {}
  ConnectionPhase phase() const { return phase_; }

 private:
  ConnectionPhase phase_;
};
/// The other side stayed silent for too long.
class ModelTimeoutError : public ModelConnectionError {
 public:
  ModelTimeoutError(const std::string& message, const ModelErrorInfo& info, ConnectionPhase phase)
      : ModelAPIError(message, info, ErrorCode::timeout), ModelConnectionError(message, info, phase) {}
};
/// The whole request, retries and streaming included, passed the setting `request_timeout`.
class ModelRequestTimeout : public virtual ModelAPIError {
 public:
  ModelRequestTimeout(const std::string& message, ModelErrorInfo info)
      : ModelAPIError(message, std::move(info), ErrorCode::timeout) {}
};

/// A reply with an error status, or an error inside a stream that stands for one. Thrown as it is for a
/// status without a category, else together with its category.
class ModelHTTPError : public virtual ModelAPIError {
 public:
  using Headers = std::map<std::string, std::string>;  ///< names in lower case

  ModelHTTPError(const std::string& message, ModelErrorInfo info, int status_code, Headers headers)
      : ModelAPIError(message, std::move(info)), status_code_(status_code), headers_(std::move(headers)) {}
  int status_code() const { return status_code_; }
  const Headers& headers() const { return headers_; }

 private:
  int status_code_;
  Headers headers_;
};

/// Which category an error belongs to. `none`: a plain ModelHTTPError or ModelAPIError.
enum class ModelErrorCategory {
  none,
  rate_limit,
  quota,
  unavailable,
  overloaded,
  server,
  rejected,
  context_window,
  authentication,
  not_found,
};

/// The category of an HTTP status (docs/reference.md, "Model errors"). `text`: the provider's message; a 503
/// that speaks of overload counts as overloaded.
ModelErrorCategory category_of_status(int status, std::string_view text);

/// Throws the HTTP error of a category: a ModelHTTPError that is also that category's class. The message is
/// made from status, model and body; `suggested_model_id`, if any, is appended as a question.
[[noreturn]] void throw_http_error(ModelErrorCategory category, ModelErrorInfo info, int status_code,
                                   ModelHTTPError::Headers headers,
                                   const std::optional<std::string>& suggested_model_id = std::nullopt);
/// Throws the error of a category that came without a status.
[[noreturn]] void throw_api_error(ModelErrorCategory category, const std::string& message,
                                  ModelErrorInfo info);

}  // namespace holt
