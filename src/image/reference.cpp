#include "holt/image/reference.hpp"

#include <algorithm>
#include <arpa/inet.h>
#include <array>
#include <charconv>
#include <netinet/in.h>
#include <system_error>

namespace holt::image {
namespace {

constexpr std::size_t k_reference_bytes = 1024;
constexpr std::size_t k_name_limit = 255;
constexpr std::size_t k_tag_limit = 128;
constexpr std::size_t k_label_limit = 63;
/// What old clients wrote for the default registry.
constexpr std::string_view k_default_registry_alias = "index.docker.io";
/// Its folder of images without another one.
constexpr std::string_view k_official = "library/";
constexpr std::string_view k_digest_prefix = "sha256:";
constexpr std::size_t k_digest_digits = 64;

bool is_lower_alphanumeric(char c) {
  return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}
bool is_alphanumeric(char c) {
  return is_lower_alphanumeric(c) || (c >= 'A' && c <= 'Z');
}

/// [a-z0-9]+ joined by ".", "_", "__" or any number of "-".
bool is_path_component(std::string_view text) {
  if (text.empty() || !is_lower_alphanumeric(text.front()) || !is_lower_alphanumeric(text.back()))
    return false;
  for (std::size_t i = 0; i < text.size();) {
    if (is_lower_alphanumeric(text[i])) {
      ++i;
      continue;
    }
    std::size_t end = i;
    while (end < text.size() && text[end] == text[i]) ++end;
    std::size_t length = end - i;
    bool fits = text[i] == '-' || (text[i] == '.' && length == 1) || (text[i] == '_' && length <= 2);
    if (!fits || end == text.size() || !is_lower_alphanumeric(text[end])) return false;
    i = end;
  }
  return true;
}

bool is_port(std::string_view text) {
  unsigned port = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), port);
  return error == std::errc() && end == text.data() + text.size() && port >= 1 && port <= 65535;
}

/// Labels of letters, digits and inner '-', joined by dots.
bool is_host_name(std::string_view host) {
  while (true) {
    std::size_t dot = host.find('.');
    std::string_view label = host.substr(0, dot);
    if (label.empty() || label.size() > k_label_limit || label.front() == '-' || label.back() == '-')
      return false;
    if (!std::ranges::all_of(label, [](char c) { return is_alphanumeric(c) || c == '-'; })) return false;
    if (dot == std::string_view::npos) return true;
    host.remove_prefix(dot + 1);
  }
}

/// The address between the brackets of "[::1]:5000" as RFC 5952 writes it; empty when that is none.
std::string ipv6_of(std::string_view host) {
  std::size_t end = host.find(']');
  if (!host.starts_with('[') || end == std::string_view::npos) return {};
  std::string inner(host.substr(1, end - 1));
  in6_addr address{};
  std::array<char, INET6_ADDRSTRLEN> text{};
  if (inner.contains('\0') || ::inet_pton(AF_INET6, inner.c_str(), &address) != 1) return {};
  return ::inet_ntop(AF_INET6, &address, text.data(), text.size());
}

bool is_host(std::string_view text) {
  std::size_t end = text.find(text.starts_with('[') ? ']' : ':');
  if (text.starts_with('[')) {
    if (ipv6_of(text).empty()) return false;
    ++end;
  } else if (!is_host_name(text.substr(0, end))) {
    return false;
  }
  if (end >= text.size()) return true;
  return text[end] == ':' && is_port(text.substr(end + 1));
}

/// What stands where a host would and looks like one; empty when the name has none.
std::string_view host_of(std::string_view name) {
  std::size_t slash = name.find('/');
  if (slash == std::string_view::npos) return {};
  std::string_view first = name.substr(0, slash);
  bool looks_like_one = first == "localhost" || first.find_first_of(".:") != std::string_view::npos;
  return looks_like_one ? first : std::string_view();
}

bool is_name(std::string_view name) {
  if (std::string_view host = host_of(name); !host.empty()) {
    if (!is_host(host)) return false;
    name.remove_prefix(host.size() + 1);
  }
  while (true) {
    std::size_t slash = name.find('/');
    if (!is_path_component(name.substr(0, slash))) return false;
    if (slash == std::string_view::npos) return true;
    name.remove_prefix(slash + 1);
  }
}

/// Leaves out the default registry and its folder of official images where the rest means the same; an IPv6
/// address has one form.
std::string familiar(std::string_view name) {
  std::string_view host = host_of(name);
  if (host == k_default_registry || host == k_default_registry_alias) {
    name.remove_prefix(host.size() + 1);
    if (!host_of(name).empty()) return std::string(k_default_registry) + "/" + std::string(name);
  } else if (host.starts_with('[')) {
    return "[" + ipv6_of(host) + std::string(name.substr(name.find(']')));
  } else if (!host.empty()) {
    return std::string(name);
  }
  if (name.starts_with(k_official) && name.find('/', k_official.size()) == std::string_view::npos) {
    name.remove_prefix(k_official.size());
  }
  return std::string(name);
}

bool is_tag(std::string_view tag) {
  if (tag.empty() || tag.size() > k_tag_limit || tag.front() == '.' || tag.front() == '-') return false;
  return std::ranges::all_of(tag,
                             [](char c) { return is_alphanumeric(c) || c == '_' || c == '.' || c == '-'; });
}

}  // namespace

bool is_digest(std::string_view text) {
  if (!text.starts_with(k_digest_prefix)) return false;
  text.remove_prefix(k_digest_prefix.size());
  return text.size() == k_digest_digits &&
         std::ranges::all_of(text, [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

std::string Reference::canonical() const {
  std::string text = name;
  if (!tag.empty()) text += ":" + tag;
  if (!digest.empty()) text += "@" + digest;
  return text;
}

std::string Reference::registry() const {
  std::string_view host = host_of(name);
  return std::string(host.empty() ? k_default_registry : host);
}

std::string Reference::repository() const {
  if (std::string_view host = host_of(name); !host.empty()) return name.substr(host.size() + 1);
  return name.find('/') == std::string::npos ? std::string(k_official) + name : name;
}

std::expected<Reference, std::string> parse_reference(std::string_view text) {
  if (text.empty()) return std::unexpected("it is empty");
  if (text.size() > k_reference_bytes) return std::unexpected("it is longer than 1,024 bytes");
  Reference reference;
  if (std::size_t at = text.find('@'); at != std::string_view::npos) {
    reference.digest = text.substr(at + 1);
    if (!is_digest(reference.digest)) {
      return std::unexpected("what follows '@' is not \"sha256:\" and 64 lower-case hexadecimal digits");
    }
    text = text.substr(0, at);
  }
  std::size_t colon = text.rfind(':');
  if (colon != std::string_view::npos && text.find_first_of("/]", colon) == std::string_view::npos) {
    reference.tag = text.substr(colon + 1);
    if (!is_tag(reference.tag))
      return std::unexpected("its tag is not 1 to 128 of letters, digits, '_', '.' and '-'");
    text = text.substr(0, colon);
  }
  if (!is_name(text)) {
    if (text.starts_with('[')) return std::unexpected("what is in brackets is no IPv6 address before a name");
    return std::unexpected("a name has lower-case letters and digits, joined by '.', '_', '-' and '/'");
  }
  reference.name = familiar(text);
  if (std::max(text.size(), reference.name.size()) > k_name_limit)
    return std::unexpected("its name is longer than 255 bytes");
  if (reference.tag.empty() && reference.digest.empty()) reference.tag = "latest";
  return reference;
}

}  // namespace holt::image
