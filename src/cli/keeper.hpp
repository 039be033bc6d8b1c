// Who owns the machine of 'holt run -d --rm': a second holt, which goes on behind the one that was called and
// ends, and with it the machine, when the command does.
#pragma once

#include "cli/outcome.hpp"
#include "cli/session.hpp"

namespace holt::cli {

/// Whether this process is that second one.
bool is_keeper();
/// Starts it with the arguments of this process and this one's streams, and returns when it has printed its
/// result, or ended: then with its exit code.
Outcome start_keeper(Session& session);
/// In the keeper, once the command runs: lets the first one go and waits for the command's end.
void keep_until_end(Session& session, const Machine& machine, const holt::CommandInfo& command);

}  // namespace holt::cli
