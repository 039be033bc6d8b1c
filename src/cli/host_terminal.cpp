#include "cli/host_terminal.hpp"

#include <algorithm>
#include <cctype>
#include <csignal>
#include <cstdlib>
#include <string_view>
#include <sys/ioctl.h>
#include <unistd.h>

namespace holt::cli {
namespace {

constexpr std::string_view k_usual_type = "xterm-256color";
constexpr std::size_t k_longest_type = 64;

/// From a background job the change would stop the process (SIGTTOU).
void set_terminal(const termios& settings) {
  sigset_t stops;
  sigset_t before;
  ::sigemptyset(&stops);
  ::sigaddset(&stops, SIGTTOU);
  ::pthread_sigmask(SIG_BLOCK, &stops, &before);
  ::tcsetattr(STDIN_FILENO, TCSANOW, &settings);
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

}  // namespace

bool wants_terminal(TerminalChoice choice, OutputKind output) {
  if (choice != TerminalChoice::automatic) return choice == TerminalChoice::always;
  return output == OutputKind::streamed && ::isatty(STDIN_FILENO) == 1 && ::isatty(STDOUT_FILENO) == 1;
}

TerminalSize host_terminal_size() {
  for (int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    winsize size{};
    if (::ioctl(fd, TIOCGWINSZ, &size) == 0) return {.rows = size.ws_row, .columns = size.ws_col};
  }
  return {};
}

std::string host_terminal_type() {
  const char* type = std::getenv("TERM");
  std::string_view text = type == nullptr ? "" : type;
  auto plain = [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '-' || c == '.' || c == '+' || c == '_';
  };
  bool good = !text.empty() && text.size() <= k_longest_type && std::ranges::all_of(text, plain);
  return std::string(good ? text : k_usual_type);
}

RawTerminal::RawTerminal() {
  termios settings{};
  if (::tcgetattr(STDIN_FILENO, &settings) != 0) return;
  before_ = settings;
  ::cfmakeraw(&settings);
  set_terminal(settings);
}

RawTerminal::~RawTerminal() {
  if (before_) set_terminal(*before_);
}

}  // namespace holt::cli
