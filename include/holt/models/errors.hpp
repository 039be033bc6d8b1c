// What can go wrong between a program and a model. One tree under AgentRunError, as Pydantic AI has it.
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

/// The model answered something that cannot be used.
class UnexpectedModelBehavior : public AgentRunError {
 public:
  explicit UnexpectedModelBehavior(const std::string& message,
                                   std::optional<std::string> body = std::nullopt);
  const std::optional<std::string>& body() const { return body_; }

 private:
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
  Json body = nullptr;
  std::optional<std::string> provider_error_code = std::nullopt;
  std::optional<std::string> provider_error_type = std::nullopt;
  std::optional<double> retry_after = std::nullopt;  ///< seconds
  bool in_stream = false;
};

/// The API could not be reached or refused. Base of all below; derived virtually, so that an HTTP error can
/// be caught as ModelHTTPError and as its category.
class ModelAPIError : public AgentRunError {
 public:
  ModelAPIError(const std::string& message, ModelErrorInfo info);
  const ModelErrorInfo& info() const { return info_; }

 private:
  ModelErrorInfo info_;
};

}  // namespace holt
