#include "monitor/listener.hpp"

#include "holt/base/error.hpp"
#include "machine/socket_address.hpp"

#include <cerrno>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

namespace holt::monitor {

using machine::SocketAddress;

Fd listen_in(const machine::MachineFolder& folder) {
  remove_socket(folder);
  SocketAddress address(folder);
  Fd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket || ::bind(socket.get(), address.get(), address.size()) != 0 ||
      ::listen(socket.get(), SOMAXCONN) != 0) {
    throw system_error(errno, "listen in the machine's folder", folder.path());
  }
  return socket;
}

void remove_socket(const machine::MachineFolder& folder) {
  ::unlink((folder.path() / machine::k_socket_name).c_str());
}

}  // namespace holt::monitor
