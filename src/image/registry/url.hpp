// URLs of registries and of what they point to.
#pragma once

#include <expected>
#include <string>
#include <string_view>

namespace holt::image {

/// An http or https URL without user and fragment. A value.
struct Url {
  std::string scheme;  ///< "http" or "https"
  std::string host;    ///< lower case; an IPv6 address in brackets
  unsigned port = 0;   ///< that of the scheme when the text has none
  std::string path;    ///< begins with '/'
  std::string query;   ///< without '?'; holds keys of storage servers, never shown

  std::string text() const;
  /// For messages: without the query.
  std::string shown() const;
  /// Scheme, host and port: what a password or a token is sent to.
  std::string origin() const;
  bool is_secure() const { return scheme == "https"; }
  /// Adds NAME=VALUE to the query, both encoded.
  void add_parameter(std::string_view name, std::string_view value);
};

/// The error says what is wrong in half a sentence and holds nothing of the text but its scheme. At most
/// 16 KiB.
std::expected<Url, std::string> parse_url(std::string_view text);
/// What a Location header means (RFC 3986, 5).
std::expected<Url, std::string> resolve_url(const Url& base, std::string_view location);

/// As application/x-www-form-urlencoded wants it, with %20 for a space.
std::string url_encode(std::string_view text);

/// True when one party runs both hosts: the same host, or names below one registrable domain of the public
/// suffix list ("auth.docker.io" and "registry-1.docker.io", not "a.github.io" and "b.github.io").
bool is_same_site(const Url& a, const Url& b);

/// "localhost" and names below it, 127.0.0.0/8, [::1]. Of the text alone: nothing is resolved.
bool is_loopback_name(std::string_view host);

}  // namespace holt::image
