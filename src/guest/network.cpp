// Interfaces by ioctl: images need no ip program, and starting one takes longer than all of this.
#include "guest/identity.hpp"
#include "holt/base/fd.hpp"

#include <arpa/inet.h>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <net/if.h>
#include <net/route.h>
#include <netinet/in.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

namespace holt::guest {
namespace {

constexpr const char* k_interface = "eth0";
constexpr std::uint32_t k_max_prefix = 32;

ifreq request_for(const char* interface) {
  ifreq request{};
  std::strncpy(request.ifr_name, interface, IFNAMSIZ - 1);
  return request;
}

bool parse_address(const std::string& text, sockaddr& out) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  if (::inet_pton(AF_INET, text.c_str(), &address.sin_addr) != 1) return false;
  std::memcpy(&out, &address, sizeof address);
  return true;
}

sockaddr netmask(std::uint32_t prefix) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = prefix == 0 ? 0 : htonl(~std::uint32_t{0} << (k_max_prefix - prefix));
  sockaddr out{};
  std::memcpy(&out, &address, sizeof address);
  return out;
}

bool bring_up(int fd, const char* interface) {
  auto request = request_for(interface);
  if (::ioctl(fd, SIOCGIFFLAGS, &request) != 0) return false;
  request.ifr_flags = static_cast<short>(request.ifr_flags | IFF_UP);
  return ::ioctl(fd, SIOCSIFFLAGS, &request) == 0;
}

bool add_default_route(int fd, const std::string& gateway) {
  rtentry route{};
  route.rt_dst.sa_family = AF_INET;
  route.rt_genmask.sa_family = AF_INET;
  route.rt_flags = RTF_UP | RTF_GATEWAY;
  return parse_address(gateway, route.rt_gateway) && ::ioctl(fd, SIOCADDRT, &route) == 0;
}

Outcome<> configure(int fd, const protocol::NetworkConfig& network) {
  auto address = request_for(k_interface);
  auto mask = request_for(k_interface);
  auto mtu = request_for(k_interface);
  if (network.prefix > k_max_prefix || !parse_address(network.address, address.ifr_addr)) {
    return refuse(ErrorCode::invalid_config, "the network configuration holds no IPv4 address");
  }
  mask.ifr_netmask = netmask(network.prefix);
  mtu.ifr_mtu = static_cast<int>(network.mtu);
  bool good = ::ioctl(fd, SIOCSIFMTU, &mtu) == 0 && ::ioctl(fd, SIOCSIFADDR, &address) == 0 &&
              ::ioctl(fd, SIOCSIFNETMASK, &mask) == 0 && bring_up(fd, k_interface) &&
              (network.gateway.empty() || add_default_route(fd, network.gateway));
  if (!good) return refuse_errno(errno, "configure interface", k_interface);
  return {};
}

void write_resolver(const std::string& name_server) {
  auto text = "nameserver " + name_server + "\n";
  ::unlink("/etc/resolv.conf");
  Fd fd(::open("/etc/resolv.conf", O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644));
  if (fd) [[maybe_unused]]
    auto written = ::write(fd.get(), text.data(), text.size());
}

}  // namespace

Outcome<> set_up_network(const protocol::IdentityRequest& request) {
  Fd fd(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!fd) return refuse_errno(errno, "open", "a socket");
  bring_up(fd.get(), "lo");
  if (!request.network) return {};
  if (auto configured = configure(fd.get(), *request.network); !configured) return configured;
  if (!request.network->name_server.empty()) write_resolver(request.network->name_server);
  return {};
}

}  // namespace holt::guest
