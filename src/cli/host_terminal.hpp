// The terminal that holt was started on, lent to a command in a machine.
#pragma once

#include "holt/machine/exec.hpp"

#include <optional>
#include <string>
#include <termios.h>

namespace holt::cli {

/// What -t and -T say.
enum class TerminalChoice {
  automatic,  ///< when standard input and standard output are terminals
  always,
  never,
};
enum class OutputKind { streamed, captured };

/// Whether the command gets a terminal; one whose output is captured gets it only when asked for.
bool wants_terminal(TerminalChoice choice, OutputKind output);

/// Size of our terminal; 24 by 80 without one.
TerminalSize host_terminal_size();

/// Our TERM where it is a plain name, else "xterm-256color": what a terminal in the guest is told to be.
std::string host_terminal_type();

/// Standard input in raw mode, so that every key goes to the guest; as it was when this ends. Nothing where
/// standard input is no terminal.
class RawTerminal {
 public:
  RawTerminal();
  ~RawTerminal();
  RawTerminal(const RawTerminal&) = delete;

 private:
  std::optional<termios> before_;
};

}  // namespace holt::cli
