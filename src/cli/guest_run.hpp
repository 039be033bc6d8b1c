// One command in a machine with this process's streams and signals joined to it: what `run` and `exec` share.
#pragma once

#include "cli/outcome.hpp"
#include "cli/session.hpp"

#include <functional>
#include <optional>
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
/// SIGHUP that it does not heed for 2 s, kill it. Throws CodedError 126 when the command could not be
/// invoked, BrokenPipe when our standard output was closed (the command is killed), Error otherwise.
GuestExit run_in_guest(Session& session, const Machine& machine, GuestPlan plan);

/// Standard input goes to the command when it was asked for or is no terminal.
enum class Interactive { no, yes };
GuestStdin stdin_choice(Interactive asked);

/// What `run` and `exec` print with --json, about the command alone.
Json guest_exit_json(const GuestExit& exit);

/// Runs `body` and writes how it ended to the file of --exit-code-file, where one is named:
/// {"exitCode","origin","signal","oom","timedOut","durationMs"}; origin "holt" when it threw. Throws what it
/// throws.
GuestExit with_exit_code_file(const Session& session, const std::optional<std::string>& file,
                              const std::function<GuestExit()>& body);

}  // namespace holt::cli
