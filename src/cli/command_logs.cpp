#include "cli/command_logs.hpp"

#include "holt/base/encoding.hpp"
#include "holt/base/time.hpp"

#include <poll.h>
#include <vector>

namespace holt::cli {
namespace {

// A guest sends what is there at once; a command that goes on is given up after so long without anything.
constexpr int k_quiet_ms = 300;

void print_piece(Session& session, const CommandInfo& command, const ExecEvent& event) {
  bool error = event.kind == ExecEvent::Kind::err;
  if (session.globals.json) {
    return session.output.json({{"ts", rfc3339(command.started_at)},
                                {"source", "exec"},
                                {"stream", error ? "stderr" : "stdout"},
                                {"text", utf8_replace(event.data)},
                                {"command", command.id}});
  }
  if (error) return session.output.err(event.data);
  session.output.out(event.data);
}

/// False when nothing came in time.
bool await(Session& session, const ExecStream& stream, int timeout_ms) {
  const auto& token = session.interrupts.token();
  pollfd fds[2] = {{.fd = stream.fd(), .events = POLLIN, .revents = 0},
                   {.fd = token.fd(), .events = POLLIN, .revents = 0}};
  int ready = ::poll(fds, 2, timeout_ms);
  token.throw_if_cancelled();
  return ready != 0;
}

}  // namespace

void print_command_logs(Session& session, const Machine& machine, Follow follow) {
  for (const auto& command : machine.commands(session.call())) {
    auto stream = machine.attach_command(command.id, {.cancel = session.interrupts.token()});
    for (;;) {
      auto tried = stream.try_next();
      if (tried.pending) {
        bool wait_for_all = follow == Follow::yes || !command.running;
        if (!await(session, stream, wait_for_all ? -1 : k_quiet_ms)) break;
        continue;
      }
      if (!tried.value || tried.value->kind == ExecEvent::Kind::exit) break;
      print_piece(session, command, *tried.value);
    }
  }
}

}  // namespace holt::cli
