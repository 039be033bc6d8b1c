// Address of a monitor's socket. Socket names are limited to 107 bytes, folders are not: the address goes
// through the folder's descriptor, /proc/self/fd/N/monitor.sock.
#pragma once

#include "holt/base/fd.hpp"
#include "machine/record.hpp"

#include <sys/socket.h>
#include <sys/un.h>

namespace holt::machine {

inline constexpr const char* k_socket_name = "monitor.sock";

/// Valid while it lives: it holds the folder open. Throws Error NOT_FOUND when there is no such folder.
class SocketAddress {
 public:
  explicit SocketAddress(const MachineFolder& folder);
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&address_); }
  socklen_t size() const { return sizeof address_; }

 private:
  Fd folder_;
  sockaddr_un address_{};
};

}  // namespace holt::machine
