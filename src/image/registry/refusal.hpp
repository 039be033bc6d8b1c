// What servers say when they do not do what they were asked.
#pragma once

#include "holt/base/error.hpp"
#include "image/registry/http.hpp"

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace holt::image {

/// Of the body of an error; what comes behind it is not read.
inline constexpr std::size_t k_error_body_bytes = std::size_t{64} << 10;

/// A status other than 2xx. 401 and 403 are UNAUTHORIZED, 404 NOT_FOUND, 429 LIMIT_EXCEEDED, all others
/// NETWORK_ERROR.
class Refusal : public Error {
 public:
  /// `what` is what was tried, e.g. "fetch the manifest of app:1 from 127.0.0.1:5000".
  Refusal(const std::string& what, const HttpHead& head, std::string_view body,
          std::optional<double> retry_after, ErrorDetails details = {});

  int status() const { return status_; }
  /// Seconds that the server asked for.
  std::optional<double> retry_after() const { return retry_after_; }

 private:
  int status_;
  std::optional<double> retry_after_;
};

/// The server's own words: code and message of the errors of an OCI registry, else the beginning of its text.
/// Printable, at most 300 bytes; empty when it says nothing. Source: OCI distribution specification 1.1,
/// error codes.
std::string error_words(std::string_view body);

}  // namespace holt::image
