// Which addresses of the network a registry may send us to.
#pragma once

#include <string>
#include <string_view>
#include <sys/socket.h>

namespace holt::image {

enum class AddressKind {
  global,      ///< of the internet
  private_,    ///< of a site: RFC 1918, RFC 4193, RFC 6598, and what is reserved
  loopback,    ///< this machine
  link_local,  ///< among them the metadata services of clouds
};

/// "a private address" and so on.
std::string_view describe(AddressKind kind);

/// IPv4 in IPv6 (mapped, 6to4, NAT64) is what it stands for. Source: IANA's registries of special-purpose
/// addresses (RFC 6890).
AddressKind address_kind(const sockaddr& address);

/// True when a registry at an address of kind `from` may name a host of kind `to`: loopback, private and
/// link-local ones only when it is one itself. One on the loopback may name private ones too.
bool may_lead(AddressKind from, AddressKind to);

/// The address as text, without its port.
std::string address_text(const sockaddr& address);

}  // namespace holt::image
