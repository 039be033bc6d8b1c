#include "cli/output.hpp"

#include "cli/outcome.hpp"
#include "holt/base/error.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <unistd.h>
#include <utility>

#include <fmt/format.h>

namespace holt::cli {
namespace {

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

/// What goes through without waiting.
void write_if_ready(int fd, std::string_view bytes) {
  pollfd ready{.fd = fd, .events = POLLOUT, .revents = 0};
  if (::poll(&ready, 1, 0) == 1 && (ready.revents & POLLOUT) != 0) [[maybe_unused]]
    auto written = ::write(fd, bytes.data(), bytes.size());
}

winsize terminal_size() {
  winsize size{};
  if (::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0 || size.ws_row == 0)
    return {.ws_row = 24, .ws_col = 80, .ws_xpixel = 0, .ws_ypixel = 0};
  return size;
}

/// From the last of so many lines back to the first one's beginning, everything behind that erased (ECMA-48:
/// CUU, ED).
std::string erase_lines(std::size_t count) {
  std::string text = "\r";
  if (count > 1) text += fmt::format("\x1b[{}A", count - 1);
  return text + "\x1b[J";
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

Output::Output()
    : out_is_terminal_(::isatty(STDOUT_FILENO) == 1),
      err_is_terminal_(::isatty(STDERR_FILENO) == 1 && !dumb_terminal()) {
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
  progress(std::vector<std::string>{std::string(text)});
}

void Output::progress(const std::vector<std::string>& lines) {
  if (!err_is_terminal_ || lines.empty()) return;
  std::lock_guard lock(mutex_);
  auto size = terminal_size();
  // One less than the size: a full last column would wrap, a full screen scroll, and neither could be erased.
  auto count = std::min<std::size_t>(lines.size(), std::max(size.ws_row - 1, 1));
  std::string text = erase_lines(progress_shown_);
  for (std::size_t i = lines.size() - count; i < lines.size(); ++i) {
    text += printable(std::string_view(lines[i]).substr(0, size.ws_col - 1U));
    if (i + 1 < lines.size()) text += "\r\n";
  }
  write_whole(STDERR_FILENO, text);
  progress_shown_ = count;
}

void Output::clear_progress() {
  std::lock_guard lock(mutex_);
  if (progress_shown_ == 0) return;
  write_whole(STDERR_FILENO, erase_lines(std::exchange(progress_shown_, 0)));
}

void Output::last_words(std::string_view result, std::string_view message) {
  std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock) return;
  std::string text = progress_shown_ > 0 ? erase_lines(std::exchange(progress_shown_, 0)) : "";
  text += message;
  write_if_ready(STDERR_FILENO, text);
  if (!printed_ && !result.empty()) write_if_ready(STDOUT_FILENO, result);
}

}  // namespace holt::cli
