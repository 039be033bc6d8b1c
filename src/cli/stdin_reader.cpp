#include "cli/stdin_reader.hpp"

#include "holt/base/error.hpp"

#include <array>
#include <cerrno>
#include <poll.h>
#include <unistd.h>

namespace holt::cli {
namespace {

constexpr std::size_t k_piece = std::size_t{256} << 10;

}  // namespace

std::string_view read_input(const Interrupts& interrupts, std::string& buffer) {
  buffer.resize(k_piece);
  while (true) {
    std::array<pollfd, 2> fds{{{STDIN_FILENO, POLLIN, 0}, {interrupts.token().fd(), POLLIN, 0}}};
    ::poll(fds.data(), fds.size(), -1);
    interrupts.token().throw_if_cancelled();
    auto count = ::read(STDIN_FILENO, buffer.data(), buffer.size());
    if (count < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (count < 0) throw system_error(errno, "Read standard input");
    return std::string_view(buffer).substr(0, static_cast<std::size_t>(count));
  }
}

std::string read_all_input(const Interrupts& interrupts, std::size_t limit) {
  std::string all;
  std::string buffer;
  while (all.size() <= limit) {
    auto piece = read_input(interrupts, buffer);
    if (piece.empty()) break;
    all += piece;
  }
  return all;
}

}  // namespace holt::cli
