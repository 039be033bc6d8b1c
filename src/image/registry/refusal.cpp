#include "image/registry/refusal.hpp"

#include "holt/base/json.hpp"

#include <fmt/format.h>

namespace holt::image {
namespace {

constexpr std::size_t k_words_bytes = 300;

ErrorCode code_of(int status) {
  switch (status) {
    case 401:
    case 403:
      return ErrorCode::unauthorized;
    case 404:
      return ErrorCode::not_found;
    case 429:
      return ErrorCode::limit_exceeded;
    default:
      return ErrorCode::network_error;
  }
}

std::string text_of(const Json& object, const char* key) {
  if (!object.is_object()) return {};
  auto it = object.find(key);
  return it != object.end() && it->is_string() ? it->get<std::string>() : std::string();
}

std::string words_of_json(const Json& body) {
  if (!body.is_object()) return {};
  auto errors = body.find("errors");
  if (errors == body.end() || !errors->is_array() || errors->empty()) {
    // What token servers answer.
    for (const char* key : {"error_description", "details", "message", "error"}) {
      if (auto words = text_of(body, key); !words.empty()) return words;
    }
    return {};
  }
  std::string code = text_of(errors->front(), "code");
  std::string message = text_of(errors->front(), "message");
  return code.empty() || message.empty() ? code + message : code + ": " + message;
}

std::string sentence(const std::string& what, int status, std::string_view body) {
  auto words = error_words(body);
  return words.empty() ? fmt::format("{}: the server answered {}", what, status)
                       : fmt::format("{}: the server answered {}, \"{}\"", what, status, words);
}

}  // namespace

std::string error_words(std::string_view body) {
  if (auto json = parse_json(body)) {
    if (auto words = words_of_json(*json); !words.empty()) return printable(words, k_words_bytes);
  }
  while (!body.empty() && std::string_view(" \t\r\n").find(body.back()) != std::string_view::npos) {
    body.remove_suffix(1);
  }
  return printable(body, k_words_bytes);
}

Refusal::Refusal(const std::string& what, const HttpHead& head, std::string_view body,
                 std::optional<double> retry_after, ErrorDetails details)
    : Error(code_of(head.status), sentence(what, head.status, body), std::move(details)),
      status_(head.status),
      retry_after_(retry_after) {}

}  // namespace holt::image
