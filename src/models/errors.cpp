#include "holt/models/errors.hpp"

#include <algorithm>
#include <array>
#include <cctype>

#include <fmt/format.h>

namespace holt {
namespace {

std::string with_body(const std::string& message, const std::optional<std::string>& body) {
  if (!body) return message;
  auto value = parse_json(*body);
  return message + ", body:\n" + (value ? dump_json(*value, {.indent = 2}) : *body);
}

std::string lower(std::string_view text) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(), [](unsigned char c) { return std::tolower(c); });
  return out;
}

std::string http_message(const ModelErrorInfo& info, int status,
                         const std::optional<std::string>& suggested) {
  auto body = info.body.is_string() ? printable(info.body.get<std::string>()) : dump_json(info.body);
  auto message = fmt::format("status_code: {}, model_name: {}, body: {}", status, info.model_name, body);
  if (suggested) message += fmt::format(". Did you mean '{}'?", *suggested);
  return message;
}

/// An HTTP error that is its category as well.
template <class Category>
class CategorizedHTTPError : public ModelHTTPError, public Category {
 public:
  CategorizedHTTPError(const std::string& message, const ModelErrorInfo& info, ErrorCode code, int status,
                       const Headers& headers)
      : ModelAPIError(message, info, code),
        ModelHTTPError(message, info, status, headers),
        Category(message, info) {}
};

ErrorCode code_of(ModelErrorCategory category) {
  switch (category) {
    case ModelErrorCategory::rate_limit:
    case ModelErrorCategory::quota:
    case ModelErrorCategory::context_window:
      return ErrorCode::limit_exceeded;
    case ModelErrorCategory::rejected:
      return ErrorCode::invalid_config;
    case ModelErrorCategory::authentication:
      return ErrorCode::unauthorized;
    case ModelErrorCategory::not_found:
      return ErrorCode::not_found;
    default:
      return ErrorCode::network_error;
  }
}

/// Calls `visit` with a null pointer of the category's class; false for `none`.
template <class Visit>
void visit_category(ModelErrorCategory category, Visit visit) {
  switch (category) {
    case ModelErrorCategory::rate_limit:
      return visit(static_cast<ModelRateLimitError*>(nullptr));
    case ModelErrorCategory::quota:
      return visit(static_cast<ModelQuotaExceededError*>(nullptr));
    case ModelErrorCategory::unavailable:
      return visit(static_cast<ModelUnavailableError*>(nullptr));
    case ModelErrorCategory::overloaded:
      return visit(static_cast<ModelOverloadedError*>(nullptr));
    case ModelErrorCategory::server:
      return visit(static_cast<ModelServerError*>(nullptr));
    case ModelErrorCategory::rejected:
      return visit(static_cast<ModelRequestRejectedError*>(nullptr));
    case ModelErrorCategory::context_window:
      return visit(static_cast<ModelContextWindowExceededError*>(nullptr));
    case ModelErrorCategory::authentication:
      return visit(static_cast<ModelAuthenticationError*>(nullptr));
    case ModelErrorCategory::not_found:
      return visit(static_cast<ModelNotFoundError*>(nullptr));
    case ModelErrorCategory::none:
      return;
  }
}

}  // namespace

UnexpectedModelBehavior::UnexpectedModelBehavior(const std::string& message, std::optional<std::string> body)
    : AgentRunError(with_body(message, body)), message_(message), body_(std::move(body)) {}

std::string_view to_string(ConnectionPhase phase) {
  switch (phase) {
    case ConnectionPhase::connect:
      return "connect";
    case ConnectionPhase::read:
      return "read";
    case ConnectionPhase::write:
      return "write";
    case ConnectionPhase::pool:
      return "pool";
  }
  return "read";
}

ModelErrorCategory category_of_status(int status, std::string_view text) {
  using enum ModelErrorCategory;
  switch (status) {
    case 400:
    case 422:
      return rejected;
    case 401:
    case 403:
      return authentication;
    case 402:
      return quota;
    case 404:
      return not_found;
    case 429:
      return rate_limit;
    case 503: {
      auto words = lower(text);
      bool overload =
          words.find("overloaded") != std::string::npos || words.find("over capacity") != std::string::npos;
      return overload ? overloaded : unavailable;
    }
    case 529:
      return overloaded;
    default:
      return status >= 500 && status < 600 ? server : none;
  }
}

void throw_http_error(ModelErrorCategory category, ModelErrorInfo info, int status_code,
                      ModelHTTPError::Headers headers, const std::optional<std::string>& suggested_model_id) {
  auto message = http_message(info, status_code, suggested_model_id);
  visit_category(category, [&]<class Category>(Category*) {
    throw CategorizedHTTPError<Category>(message, info, code_of(category), status_code, headers);
  });
  throw ModelHTTPError(message, std::move(info), status_code, std::move(headers));
}

void throw_api_error(ModelErrorCategory category, const std::string& message, ModelErrorInfo info) {
  visit_category(category, [&]<class Category>(Category*) { throw Category(message, info); });
  throw ModelAPIError(message, std::move(info));
}

}  // namespace holt
