// One command in a machine with this process's streams and signals joined to it: what `run` and `exec` share.
#pragma once

#include "cli/outcome.hpp"
#include "cli/session.hpp"

#include <string>
#include <vector>

namespace holt::cli {

enum class GuestStdin { empty, forwarded };
enum class GuestOutput {
  streamed,  ///< to our streams, byte for byte
  captured,  ///< into GuestExit, up to ExecOptions::output_limit each
};

struct GuestPlan {
  std::vector<std::string> argv;
  ExecOptions options = {};
  GuestStdin input = GuestStdin::empty;
  GuestOutput output = GuestOutput::streamed;
};

/// Runs it to its end. SIGINT and SIGQUIT go to the command; a second SIGINT within 2 s, and SIGTERM or
/// SIGHUP that it does not heed for 2 s, kill it. Throws NotInvoked when the command could not be invoked,
/// BrokenPipe when our standard output was closed (the command is killed), Error otherwise.
GuestExit run_in_guest(Session& session, const Machine& machine, GuestPlan plan);

/// Standard input goes to the command when it was asked for or is no terminal.
enum class Interactive { no, yes };
GuestStdin stdin_choice(Interactive asked);

/// What `run` and `exec` print with --json, about the command alone.
Json guest_exit_json(const GuestExit& exit);

/// The file of --exit-code-file: {"exitCode","origin","signal","oom","timedOut","durationMs"}. Throws Error.
void write_exit_code_file(const std::string& path, const GuestExit& exit);
/// The same for a failure of holt itself: origin "holt".
void write_exit_code_file(const std::string& path, int code);

}  // namespace holt::cli
