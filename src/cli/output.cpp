#include "cli/output.hpp"

#include "cli/outcome.hpp"
#include "holt/base/error.hpp"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <unistd.h>

namespace holt::cli {
namespace {

constexpr std::string_view k_clear_line = "\r\x1b[K";

/// 0, or the errno of the failure. Waits for a full non-blocking pipe.
int write_whole(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    ssize_t written = ::write(fd, bytes.data(), bytes.size());
    if (written >= 0) {
      bytes.remove_prefix(static_cast<std::size_t>(written));
    } else if (errno == EAGAIN) {
      pollfd wait{.fd = fd, .events = POLLOUT, .revents = 0};
      ::poll(&wait, 1, -1);
    } else if (errno != EINTR) {
      return errno;
    }
  }
  return 0;
}

std::size_t terminal_width() {
  winsize size{};
  if (::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return 80;
  return size.ws_col;
}

bool dumb_terminal() {
  const char* term = std::getenv("TERM");
  return term == nullptr || std::strcmp(term, "dumb") == 0 || *term == '\0';
}

}  // namespace

void secure_standard_descriptors() {
  for (int fd = 0; fd <= 2; ++fd) {
    if (::fcntl(fd, F_GETFD) >= 0) continue;
    // The lowest free number is this one.
    if (::open("/dev/null", O_RDWR) != fd) std::abort();
  }
}

Output::Output() : err_is_terminal_(::isatty(STDERR_FILENO) == 1 && !dumb_terminal()) {
  set_color(ColorChoice::automatic);
}

void Output::set_color(ColorChoice choice) {
  const char* no_color = std::getenv("NO_COLOR");
  bool wanted = err_is_terminal_ && (no_color == nullptr || *no_color == '\0');
  color_ = choice == ColorChoice::always || (choice == ColorChoice::automatic && wanted);
}

void Output::out(std::string_view bytes) {
  std::lock_guard lock(mutex_);
  if (bytes.empty()) return;
  clear_progress();
  printed_ = true;
  int error = write_whole(STDOUT_FILENO, bytes);
  if (error == EPIPE) throw BrokenPipe{};
  if (error != 0) throw system_error(error, "Write to standard output");
}

void Output::line(std::string_view text) {
  std::string whole(text);
  whole += '\n';
  out(whole);
}

void Output::json(const Json& value) {
  line(dump_json(value));
}

void Output::err(std::string_view bytes) {
  std::lock_guard lock(mutex_);
  clear_progress();
  write_whole(STDERR_FILENO, bytes);
}

void Output::note(std::string_view text) {
  std::string whole = "holt: ";
  whole += text;
  whole += '\n';
  err(whole);
}

void Output::progress(std::string_view text) {
  if (!err_is_terminal_) return;
  std::lock_guard lock(mutex_);
  // One less than the width: a full last column would wrap and could not be cleared.
  std::string line(k_clear_line);
  line += printable(text.substr(0, terminal_width() - 1));
  write_whole(STDERR_FILENO, line);
  progress_shown_ = true;
}

void Output::clear_progress() {
  std::lock_guard lock(mutex_);
  if (!progress_shown_) return;
  progress_shown_ = false;
  write_whole(STDERR_FILENO, k_clear_line);
}

}  // namespace holt::cli
