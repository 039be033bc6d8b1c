#include "image/registry/url.hpp"

#include "holt/base/error.hpp"

#include <algorithm>
#include <arpa/inet.h>
#include <libpsl.h>
#include <memory>
#include <netinet/in.h>

#include <curl/curl.h>
#include <fmt/format.h>

namespace holt::image {
namespace {

constexpr std::size_t k_url_bytes = std::size_t{16} << 10;
constexpr unsigned k_http_port = 80;
constexpr unsigned k_https_port = 443;
constexpr std::size_t k_shown_scheme = 20;

struct CurlUrlDeleter {
  void operator()(CURLU* handle) const { curl_url_cleanup(handle); }
};
using CurlUrl = std::unique_ptr<CURLU, CurlUrlDeleter>;

std::string part(CURLU* handle, CURLUPart which, unsigned flags = 0) {
  char* text = nullptr;
  if (curl_url_get(handle, which, &text, flags) != CURLUE_OK) return {};
  std::string copy(text);
  curl_free(text);
  return copy;
}

std::string lower(std::string text) {
  std::ranges::transform(text, text.begin(), [](unsigned char c) {
    return static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
  });
  return text;
}

std::string why_not(CURLUcode code, std::string_view text) {
  if (code == CURLUE_UNSUPPORTED_SCHEME) {
    return fmt::format("its scheme \"{}\" is neither http nor https",
                       printable(text.substr(0, text.find(':')), k_shown_scheme));
  }
  if (code == CURLUE_USER_NOT_ALLOWED) return "it holds a user name";
  return fmt::format("it is no URL ({})", curl_url_strerror(code));
}

std::expected<Url, std::string> read(CURLU* handle, std::string_view text) {
  if (text.size() > k_url_bytes) return std::unexpected("it is longer than 16 KiB");
  // libcurl takes a C string.
  if (text.find('\0') != std::string_view::npos) return std::unexpected("it holds a NUL");
  std::string copy(text);
  auto code = curl_url_set(handle, CURLUPART_URL, copy.c_str(), CURLU_DISALLOW_USER | CURLU_URLENCODE);
  if (code != CURLUE_OK) return std::unexpected(why_not(code, text));
  Url url;
  url.scheme = lower(part(handle, CURLUPART_SCHEME));
  if (url.scheme != "http" && url.scheme != "https") {
    return std::unexpected(why_not(CURLUE_UNSUPPORTED_SCHEME, url.scheme));
  }
  url.host = lower(part(handle, CURLUPART_HOST));
  if (url.host.empty()) return std::unexpected("it names no host");
  std::string port = part(handle, CURLUPART_PORT);
  url.port = port.empty() ? (url.is_secure() ? k_https_port : k_http_port)
                          : static_cast<unsigned>(std::strtoul(port.c_str(), nullptr, 10));
  url.path = part(handle, CURLUPART_PATH);
  if (url.path.empty()) url.path = "/";
  url.query = part(handle, CURLUPART_QUERY);
  // What stands for a byte beyond ASCII is three times as long.
  if (url.text().size() > k_url_bytes) return std::unexpected("it is longer than 16 KiB when it is encoded");
  return url;
}

bool is_address(const std::string& host) {
  in_addr four{};
  return host.starts_with('[') || ::inet_pton(AF_INET, host.c_str(), &four) == 1;
}

std::string registrable_domain(const std::string& host) {
  const char* domain = psl_registrable_domain(psl_builtin(), host.c_str());
  return domain != nullptr ? domain : "";
}

}  // namespace

std::string Url::origin() const {
  return fmt::format("{}://{}:{}", scheme, host, port);
}

std::string Url::shown() const {
  bool usual = port == (is_secure() ? k_https_port : k_http_port);
  return usual ? fmt::format("{}://{}{}", scheme, host, path)
               : fmt::format("{}://{}:{}{}", scheme, host, port, path);
}

std::string Url::text() const {
  return query.empty() ? shown() : shown() + "?" + query;
}

void Url::add_parameter(std::string_view name, std::string_view value) {
  if (!query.empty()) query += '&';
  query += url_encode(name) + "=" + url_encode(value);
}

std::expected<Url, std::string> parse_url(std::string_view text) {
  CurlUrl handle(curl_url());
  if (!handle) throw std::bad_alloc();
  return read(handle.get(), text);
}

std::expected<Url, std::string> resolve_url(const Url& base, std::string_view location) {
  CurlUrl handle(curl_url());
  if (!handle) throw std::bad_alloc();
  if (curl_url_set(handle.get(), CURLUPART_URL, base.text().c_str(), CURLU_URLENCODE) != CURLUE_OK) {
    return std::unexpected("what it is relative to is no URL");
  }
  if (location.empty()) return std::unexpected("it is empty");
  return read(handle.get(), location);
}

std::string url_encode(std::string_view text) {
  std::string out;
  for (char c : text) {
    bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
                 c == '.' || c == '_' || c == '~';
    if (plain) {
      out += c;
    } else {
      out += fmt::format("%{:02X}", static_cast<unsigned char>(c));
    }
  }
  return out;
}

bool is_same_site(const Url& a, const Url& b) {
  if (a.host == b.host) return true;
  if (is_address(a.host) || is_address(b.host)) return false;
  std::string domain = registrable_domain(a.host);
  return !domain.empty() && domain == registrable_domain(b.host);
}

bool is_loopback_name(std::string_view host) {
  std::string name = lower(std::string(host));
  in_addr four{};
  in6_addr six{};
  if (::inet_pton(AF_INET, name.c_str(), &four) == 1) return (ntohl(four.s_addr) >> 24) == 127;
  if (name.starts_with('[') && ::inet_pton(AF_INET6, name.substr(1, name.size() - 2).c_str(), &six) == 1)
    return IN6_IS_ADDR_LOOPBACK(&six);
  return name == "localhost" || name.ends_with(".localhost");
}

}  // namespace holt::image
