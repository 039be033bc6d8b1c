#include "models/exchange.hpp"

#include "holt/base/encoding.hpp"
#include "holt/models/errors.hpp"

#include <cmath>

#include <fmt/format.h>

namespace holt {
namespace {

constexpr std::size_t k_refusal_limit = std::size_t{64} << 10;
constexpr std::size_t k_body_limit = std::size_t{64} << 20;
constexpr std::size_t k_quoted = 200;
constexpr double k_longest_seconds = 1e9;

Duration seconds(double value) {
  return std::chrono::duration_cast<Duration>(std::chrono::duration<double>(value));
}

std::optional<double> seconds_setting(const ModelSettings& settings, const char* name) {
  auto value = settings.value(name, Json());
  if (value.is_null()) return std::nullopt;
  if (!value.is_number() || !(value.get<double>() > 0)) {
    throw UserError(fmt::format("The setting `{}` must be a number of seconds above 0", name));
  }
  return std::min(value.get<double>(), k_longest_seconds);
}

bool is_success(const HttpHead& head) {
  return head.status >= 200 && head.status < 300;
}

/// One try. Fills `refused` on a bad status.
Task<std::optional<HttpHead>> attempt(HttpClient& client, const HttpRequest& request, const ReplySink& sink,
                                      RefusedReply& refused, bool& begun) {
  refused = {};
  begun = false;
  HttpHandlers handlers;
  handlers.on_head = [&](const HttpHead& head) {
    refused.head = head;
    if (!is_success(head)) return;
    begun = true;
    if (sink.begin) sink.begin(head);
  };
  handlers.on_body = [&](std::string_view piece) {
    if (is_success(refused.head)) {
      sink.piece(piece);
      return HttpHandlers::Next::go_on;
    }
    refused.body += piece.substr(0, k_refusal_limit - refused.body.size());
    return refused.body.size() < k_refusal_limit ? HttpHandlers::Next::go_on : HttpHandlers::Next::enough;
  };
  auto head = co_await client.send(request, handlers);
  if (is_success(head)) co_return std::nullopt;
  co_return head;
}

[[noreturn]] void throw_transport_error(const HttpTransportError& error, const ExchangeLimits& limits,
                                        const ModelNames& names) {
  ModelErrorInfo info{.model_name = names.current()};
  switch (error.kind()) {
    case HttpTransportError::Kind::deadline:
      throw ModelRequestTimeout(fmt::format("Model '{}' did not finish within {} seconds", names.asked,
                                            dump_json(*limits.request_timeout)),
                                info);
    case HttpTransportError::Kind::timeout:
      throw ModelTimeoutError("Request timed out.", info, error.phase());
    case HttpTransportError::Kind::connection:
      break;
  }
  throw ModelConnectionError("Connection error.", info, error.phase());
}

}  // namespace

ExchangeLimits ExchangeLimits::from_settings(const ModelSettings& settings) {
  ExchangeLimits limits;
  if (!settings.is_object()) return limits;
  if (auto timeout = seconds_setting(settings, "timeout")) {
    limits.idle_timeout = seconds(*timeout);
    limits.connect_timeout = std::min(limits.connect_timeout, limits.idle_timeout);
  }
  limits.request_timeout = seconds_setting(settings, "request_timeout");
  auto retries = settings.value("max_retries", Json());
  if (retries.is_null()) return limits;
  auto count = json_integer<int>(retries);
  if (!count || *count < 0 || *count > 1000) {
    throw UserError("The setting `max_retries` must be a whole number from 0 to 1000");
  }
  limits.max_retries = *count;
  return limits;
}

Task<std::optional<RefusedReply>> exchange(HttpClient& client, const RetryClock& clock, ExchangeLimits limits,
                                           HttpRequest request, ReplyKind kind, ReplySink sink,
                                           ModelNames names) {
  auto deadline =
      limits.request_timeout ? Deadline::after(seconds(*limits.request_timeout)) : Deadline::never();
  request.connect_timeout = limits.connect_timeout;
  request.idle_timeout = limits.idle_timeout;
  request.deadline = deadline;
  RefusedReply refused;
  bool begun = false;
  auto one_try = [&]() -> Task<std::optional<HttpHead>> {
    try {
      co_return co_await attempt(client, request, sink, refused, begun);
    } catch (const HttpTransportError& error) {
      if (kind == ReplyKind::whole || !begun) throw;
      throw_transport_error(error, limits, names);
    }
  };
  try {
    co_await with_retries(clock, {.max_retries = limits.max_retries, .deadline = deadline}, one_try);
  } catch (const HttpTransportError& error) {
    throw_transport_error(error, limits, names);
  }
  if (is_success(refused.head)) co_return std::nullopt;
  co_return refused;
}

void BodyBuffer::add(std::string_view piece, const std::string& model_name) {
  if (text_.size() + piece.size() > k_body_limit) {
    throw ModelAPIError(fmt::format("The reply is longer than {} bytes", k_body_limit),
                        {.model_name = model_name});
  }
  text_ += piece;
}

Json decode_reply(const HttpHead& head, const std::string& body, const std::string& model_name) {
  auto value = parse_json(body);
  if (value) return std::move(*value);
  auto type = head.headers.find("content-type");
  bool says_json = type != head.headers.end() && type->second.find("json") != std::string::npos;
  if (!says_json) {
    throw ModelAPIError(fmt::format("The reply is not JSON: '{}'", printable(body, k_quoted)),
                        {.model_name = model_name});
  }
  throw ModelAPIError(fmt::format("The reply cannot be decoded: Not JSON: {}", value.error().text()),
                      {.model_name = model_name});
}

Json decode_event(std::string_view data, const std::string& model_name) {
  auto value = parse_json(data);
  if (value) return std::move(*value);
  throw ModelAPIError(fmt::format("The reply cannot be decoded: Not JSON: {}", value.error().text()),
                      {.model_name = model_name});
}

Json refusal_body(const std::string& body) {
  if (body.empty()) return nullptr;
  auto value = parse_json(body);
  return value ? std::move(*value) : Json(utf8_replace(body));
}

}  // namespace holt
