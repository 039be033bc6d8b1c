#include "image/registry/proxy.hpp"

namespace holt::image {
namespace {

std::string first_of(const Directories::Lookup& environment, std::initializer_list<const char*> names) {
  for (const char* name : names) {
    if (auto value = environment(name); value && !value->empty()) return *value;
  }
  return {};
}

bool is_below(std::string_view host, std::string_view domain) {
  while (domain.starts_with('.')) domain.remove_prefix(1);
  if (domain.empty() || !host.ends_with(domain)) return false;
  return host.size() == domain.size() || host[host.size() - domain.size() - 1] == '.';
}

bool is_excepted(std::string_view host, std::string_view list) {
  if (list == "*") return true;
  while (!list.empty()) {
    auto end = list.find_first_of(", ");
    if (is_below(host, list.substr(0, end))) return true;
    list = end == std::string_view::npos ? std::string_view() : list.substr(end + 1);
  }
  return false;
}

}  // namespace

std::string proxy_for(const Url& url, const Directories::Lookup& environment) {
  if (is_loopback_name(url.host)) return {};
  if (is_excepted(url.host, first_of(environment, {"no_proxy", "NO_PROXY"}))) return {};
  auto proxy = url.is_secure() ? first_of(environment, {"https_proxy", "HTTPS_PROXY"})
                               : first_of(environment, {"http_proxy"});
  return proxy.empty() ? first_of(environment, {"all_proxy", "ALL_PROXY"}) : proxy;
}

}  // namespace holt::image
