#include "holt/base/fd.hpp"

#include "holt/base/error.hpp"

#include <cerrno>
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

namespace holt {

void Fd::reset(int fd) {
  if (fd_ >= 0) ::close(fd_);
  fd_ = fd;
}

std::pair<Fd, Fd> socket_pair() {
  int fds[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) != 0)
    throw system_error(errno, "make a socket pair");
  return {Fd(fds[0]), Fd(fds[1])};
}

std::pair<Fd, Fd> make_pipe() {
  int fds[2];
  if (::pipe2(fds, O_CLOEXEC) != 0) throw system_error(errno, "make a pipe");
  return {Fd(fds[0]), Fd(fds[1])};
}

Fd duplicate(int fd) {
  Fd copy(::fcntl(fd, F_DUPFD_CLOEXEC, 0));
  if (!copy) throw system_error(errno, "duplicate a descriptor");
  return copy;
}

}  // namespace holt
