#include "cli/stdin_forwarder.hpp"

#include "holt/base/error.hpp"

#include <cerrno>
#include <poll.h>
#include <string>
#include <unistd.h>

namespace holt::cli {
namespace {

constexpr std::size_t k_piece = std::size_t{64} << 10;

}  // namespace

StdinForwarder::StdinForwarder(ExecStream& stream) : thread_([this, &stream] { copy(stream); }) {}

StdinForwarder::~StdinForwarder() {
  end_.cancel();
}

void StdinForwarder::copy(ExecStream& stream) {
  std::string buffer(k_piece, '\0');
  try {
    while (true) {
      pollfd fds[2] = {{.fd = STDIN_FILENO, .events = POLLIN, .revents = 0},
                       {.fd = end_.fd(), .events = POLLIN, .revents = 0}};
      if (::poll(fds, 2, -1) < 0 && errno != EINTR) break;
      if (end_.cancelled()) return;
      if (fds[0].revents == 0) continue;
      ssize_t count = ::read(STDIN_FILENO, buffer.data(), buffer.size());
      if (count < 0 && (errno == EINTR || errno == EAGAIN)) continue;
      if (count <= 0) break;
      stream.write_stdin(std::string_view(buffer).substr(0, static_cast<std::size_t>(count)),
                         {.cancel = end_});
    }
    stream.close_stdin();
  } catch (const Error&) {  // the stream's reader reports why it ended
  }
}

}  // namespace holt::cli
