// One command in a machine with this process's streams and signals joined to it: what `run` and `exec` share.
#pragma once

#include "cli/host_terminal.hpp"
#include "cli/options.hpp"
#include "cli/outcome.hpp"
#include "cli/session.hpp"

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace holt::cli {

enum class GuestStdin { empty, forwarded };

struct GuestPlan {
  std::vector<std::string> argv;
  ExecOptions options = {};
  GuestStdin input = GuestStdin::empty;
  /// To our streams, byte for byte; or into GuestExit, up to ExecOptions::output_limit each.
  OutputKind output = OutputKind::streamed;
};

/// A bad user, working folder or variable, as against a machine or engine that failed.
bool is_refusal_to_invoke(const Error& error, const Machine& machine);
/// Does what starts a command. Throws CodedError 126 where the command could not be invoked.
template <class Action>
auto invoke(const Machine& machine, Action action) {
  try {
    return action();
  } catch (const Error& error) {
    if (is_refusal_to_invoke(error, machine)) throw CodedError(error, k_exit_not_invoked);
    throw;
  }
}

/// Gives a command a terminal of our terminal's size and type, and what is typed into ours.
void lend_terminal(GuestPlan& plan);

/// Runs it to its end. With a terminal ours is in raw mode meanwhile, and its size is followed. SIGINT and
/// SIGQUIT go to the command; a second SIGINT within 2 s, and SIGTERM or SIGHUP that it does not heed for 2
/// s, kill it. Throws CodedError 126 when the command could not be invoked, BrokenPipe when our standard
/// output was closed (the command is killed), Error otherwise.
GuestExit run_in_guest(Session& session, const Machine& machine, GuestPlan plan);

/// Shows what a background command has written and goes on to write, and how it ends. An interrupt ends the
/// look, not the command, unless signals are handed on.
enum class SignalProxy { off, on };
GuestExit follow_command(Session& session, const Machine& machine, const std::string& id, OutputKind output,
                         SignalProxy proxy);

/// -i, -t and -T of the verbs that run a command.
class StreamFlags {
 public:
  void declare(Options& options);
  /// Chooses input, terminal and output of a plan: a terminal as wants_terminal() says, with what is typed
  /// into ours; else standard input where it was asked for or is no terminal. Throws Error USAGE for -t with
  /// -T.
  void apply(GuestPlan& plan, OutputKind output) const;
  /// For a command that goes on without us: it has no input, and a terminal only for -t.
  void apply_detached(GuestPlan& plan) const;

 private:
  bool interactive_ = false;
  bool tty_ = false;
  bool no_tty_ = false;
};

/// What `run` and `exec` print with --json, about the command alone.
Json guest_exit_json(const GuestExit& exit);

/// Runs `body` and writes how it ended to the file of --exit-code-file, where one is named:
/// {"exitCode","origin","signal","oom","timedOut","durationMs"}; origin "holt" when it threw. Throws what it
/// throws.
GuestExit with_exit_code_file(const Session& session, const std::optional<std::string>& file,
                              const std::function<GuestExit()>& body);

}  // namespace holt::cli
