// What the background commands of a machine have written.
#pragma once

#include "cli/session.hpp"

namespace holt::cli {

enum class Follow { no, yes };

/// Prints the kept output of every background command, oldest command first: each stream to its own, or one
/// JSON object a piece. With Follow::yes goes on until all of them have ended. Throws Error INVALID_STATE
/// when the machine does not run: what they wrote is kept in its memory.
void print_command_logs(Session& session, const Machine& machine, Follow follow);

}  // namespace holt::cli
