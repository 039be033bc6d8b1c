#include "image/registry/address.hpp"

#include <algorithm>
#include <arpa/inet.h>
#include <array>
#include <cstdint>
#include <cstring>
#include <netinet/in.h>

namespace holt::image {
namespace {

struct Block {
  std::uint32_t first;
  unsigned bits;
  AddressKind kind;
};

constexpr std::array k_blocks = {
    Block{0x00000000, 8, AddressKind::loopback},     // "this host on this network": Linux connects to itself
    Block{0x0a000000, 8, AddressKind::private_},     // 10.0.0.0
    Block{0x64400000, 10, AddressKind::private_},    // 100.64.0.0, shared by carriers
    Block{0x7f000000, 8, AddressKind::loopback},     // 127.0.0.0
    Block{0xa9fe0000, 16, AddressKind::link_local},  // 169.254.0.0
    Block{0xac100000, 12, AddressKind::private_},    // 172.16.0.0
    Block{0xc0000000, 24, AddressKind::private_},    // 192.0.0.0, IETF protocol assignments
    Block{0xc0a80000, 16, AddressKind::private_},    // 192.168.0.0
    Block{0xc6120000, 15, AddressKind::private_},    // 198.18.0.0, benchmarks
    Block{0xe0000000, 3, AddressKind::private_},     // 224.0.0.0 and above: multicast, reserved, broadcast
};

AddressKind kind_of(std::uint32_t address) {
  const auto* found = std::ranges::find_if(
      k_blocks, [&](const Block& block) { return (address ^ block.first) >> (32 - block.bits) == 0; });
  return found == k_blocks.end() ? AddressKind::global : found->kind;
}

std::uint32_t four_at(const in6_addr& address, std::size_t offset) {
  std::uint32_t value = 0;
  std::memcpy(&value, address.s6_addr + offset, sizeof value);
  return ntohl(value);
}

AddressKind kind_of(const in6_addr& address) {
  const auto* bytes = address.s6_addr;
  auto zeros = [&](std::size_t count) {
    return std::all_of(bytes, bytes + count, [](auto b) { return b == 0; });
  };
  if (zeros(15) && bytes[15] <= 1) return AddressKind::loopback;
  if (IN6_IS_ADDR_V4MAPPED(&address) || zeros(12)) return kind_of(four_at(address, 12));
  if (four_at(address, 0) == 0x0064ff9b) return kind_of(four_at(address, 12));    // NAT64, RFC 6052
  if (bytes[0] == 0x20 && bytes[1] == 0x02) return kind_of(four_at(address, 2));  // 6to4, RFC 3056
  if (bytes[0] == 0xfe && (bytes[1] & 0xc0) == 0x80) return AddressKind::link_local;
  bool global = (bytes[0] & 0xe0) == 0x20;  // 2000::/3 is all that is given out
  return global ? AddressKind::global : AddressKind::private_;
}

}  // namespace

std::string_view describe(AddressKind kind) {
  switch (kind) {
    case AddressKind::global:
      return "a public address";
    case AddressKind::private_:
      return "a private address";
    case AddressKind::loopback:
      return "an address of this machine";
    case AddressKind::link_local:
      return "a link-local address";
  }
  return {};
}

AddressKind address_kind(const sockaddr& address) {
  if (address.sa_family == AF_INET) {
    sockaddr_in four{};
    std::memcpy(&four, &address, sizeof four);
    return kind_of(ntohl(four.sin_addr.s_addr));
  }
  if (address.sa_family == AF_INET6) {
    sockaddr_in6 six{};
    std::memcpy(&six, &address, sizeof six);
    return kind_of(six.sin6_addr);
  }
  return AddressKind::private_;
}

bool may_lead(AddressKind from, AddressKind to) {
  if (to == AddressKind::global || to == from) return true;
  return from == AddressKind::loopback && to == AddressKind::private_;
}

std::string address_text(const sockaddr& address) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  if (address.sa_family == AF_INET) {
    sockaddr_in four{};
    std::memcpy(&four, &address, sizeof four);
    ::inet_ntop(AF_INET, &four.sin_addr, text.data(), text.size());
  } else if (address.sa_family == AF_INET6) {
    sockaddr_in6 six{};
    std::memcpy(&six, &address, sizeof six);
    ::inet_ntop(AF_INET6, &six.sin6_addr, text.data(), text.size());
  }
  return text.data();
}

}  // namespace holt::image
