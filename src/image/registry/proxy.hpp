// The proxy that the environment names for a URL.
#pragma once

#include "holt/base/directories.hpp"
#include "image/registry/url.hpp"

#include <string>

namespace holt::image {

/// Empty for none. https_proxy or http_proxy by the URL's scheme, else all_proxy, each also in upper case
/// (but not HTTP_PROXY, which a web server's client can set); none for what no_proxy names ("*", hosts and
/// domains with all below them) and for the loopback. Source: the conventions of curl(1), ENVIRONMENT.
std::string proxy_for(const Url& url, const Directories::Lookup& environment);

}  // namespace holt::image
