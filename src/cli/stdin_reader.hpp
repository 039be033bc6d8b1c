// Standard input, read so that an interrupt ends the wait.
#pragma once

#include "cli/interrupts.hpp"

#include <string>
#include <string_view>

namespace holt::cli {

/// The next piece of standard input, kept in `buffer`; empty at its end. Throws Error CANCELLED for an
/// interrupt.
std::string_view read_input(const Interrupts& interrupts, std::string& buffer);

/// All of it, at most `limit` bytes and the piece that goes above.
std::string read_all_input(const Interrupts& interrupts, std::size_t limit);

}  // namespace holt::cli
