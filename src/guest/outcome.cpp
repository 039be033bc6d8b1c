#include "guest/outcome.hpp"

#include <algorithm>
#include <cstring>

namespace holt::guest {
namespace {

/// A path in a message; longer ones come only from a host that sends nonsense.
constexpr std::size_t k_max_shown = 4096;

}  // namespace

std::string_view error_text(int error_number) {
  const char* text = ::strerrordesc_np(error_number);
  return text == nullptr ? "Unknown error" : text;
}

std::unexpected<Failure> refuse(ErrorCode code, std::string message, std::string path) {
  message.resize(std::min(message.size(), 2 * k_max_shown));
  path.resize(std::min(path.size(), k_max_shown));
  return std::unexpected(
      Failure{.code = std::string(to_string(code)), .message = std::move(message), .path = std::move(path)});
}

std::unexpected<Failure> refuse_errno(int error_number, std::string_view action, std::string_view path) {
  path = path.substr(0, k_max_shown);
  std::string message(action.substr(0, k_max_shown));
  message.append(" ").append(path).append(": ").append(error_text(error_number));
  return std::unexpected(Failure{.code = std::string(to_string(error_code_of_errno(error_number))),
                                 .error_number = error_number,
                                 .message = std::move(message),
                                 .path = std::string(path)});
}

}  // namespace holt::guest
