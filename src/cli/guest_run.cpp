#include "cli/guest_run.hpp"

#include "cli/errors.hpp"
#include "cli/guest_signals.hpp"
#include "cli/output_file.hpp"
#include "cli/stdin_forwarder.hpp"
#include "holt/base/encoding.hpp"
#include "holt/base/files.hpp"

#include <algorithm>
#include <unistd.h>

namespace holt::cli {
namespace {

/// Adds to a captured output within its limit.
void capture(std::string& kept, bool& truncated, std::string_view bytes, std::size_t limit) {
  auto room = limit - std::min(limit, kept.size());
  truncated = truncated || bytes.size() > room;
  kept += bytes.substr(0, room);
}

/// Reads the stream to its end into `captured` or our own streams.
std::optional<ExecResult> pump(Session& session, ExecStream& stream, OutputKind output, std::size_t limit,
                               ExecResult& captured) {
  auto take = [&](const ExecEvent& event) {
    bool is_out = event.kind == ExecEvent::Kind::out;
    if (output == OutputKind::captured) {
      capture(is_out ? captured.out : captured.err, is_out ? captured.out_truncated : captured.err_truncated,
              event.data, limit);
    } else if (is_out) {
      session.output.out(event.data);
    } else {
      session.output.err(event.data);
    }
  };
  while (auto event = stream.next()) {
    if (event->kind == ExecEvent::Kind::exit) return event->result;
    take(*event);
  }
  return std::nullopt;
}

GuestExit finish(std::optional<ExecResult> result, ExecResult captured, std::optional<int> killed_by) {
  GuestExit exit;
  if (result) {
    exit.result = std::move(*result);
  } else {
    exit.result.signal = 9;
    exit.interrupted_by = killed_by;
  }
  exit.result.out = std::move(captured.out);
  exit.result.err = std::move(captured.err);
  exit.result.out_truncated = exit.result.out_truncated || captured.out_truncated;
  exit.result.err_truncated = exit.result.err_truncated || captured.err_truncated;
  return exit;
}

/// Everything that needs the command's stream.
GuestExit run_stream(Session& session, const Machine& machine, const GuestPlan& plan) {
  ExecResult captured;
  auto stream = machine.exec_stream(plan.argv, plan.options);
  bool has_terminal = plan.options.terminal.has_value();
  GuestSignals signals(session.interrupts, stream, has_terminal ? GuestSize::follows_ours : GuestSize::own);
  // Behind the signals: while ours is raw, none can end this program without its coming back.
  std::optional<RawTerminal> raw;
  if (has_terminal && plan.input == GuestStdin::forwarded) raw.emplace();
  std::optional<StdinForwarder> forwarder;
  if (plan.input == GuestStdin::forwarded) forwarder.emplace(stream);
  try {
    auto result = pump(session, stream, plan.output, plan.options.output_limit, captured);
    return finish(std::move(result), std::move(captured), signals.killed_by());
  } catch (...) {
    stream.kill();  // frees a forwarder that waits for the command to read
    throw;
  }
}

Json exit_json(int code, std::string_view origin) {
  return Json{{"exitCode", code}, {"origin", origin},  {"signal", nullptr},
              {"oom", false},     {"timedOut", false}, {"durationMs", nullptr}};
}

Json exit_json(const GuestExit& exit) {
  Json json = exit_json(exit_code(exit), origin_of(exit));
  const auto& result = exit.result;
  auto signal = exit.interrupted_by ? exit.interrupted_by : result.signal;
  if (signal) json["signal"] = *signal;
  json["oom"] = result.oom;
  json["timedOut"] = result.timed_out;
  json["durationMs"] = std::chrono::duration_cast<std::chrono::milliseconds>(result.duration).count();
  return json;
}

void add_output(Json& json, const std::string& name, const std::string& bytes) {
  json[name] = utf8_replace(bytes);
  if (!is_utf8(bytes)) json[name + "B64"] = base64_encode(bytes, Base64Alphabet::standard);
}

}  // namespace

bool is_refusal_to_invoke(const Error& error, const Machine& machine) {
  if (error.subject() == machine.name()) return false;
  switch (error.code()) {
    case ErrorCode::not_found:
    case ErrorCode::not_a_directory:
    case ErrorCode::is_directory:
    case ErrorCode::permission_denied:
    case ErrorCode::invalid_config:
      return true;
    default:
      return false;
  }
}

GuestExit run_in_guest(Session& session, const Machine& machine, GuestPlan plan) {
  if (plan.input == GuestStdin::forwarded) plan.options.stdin_mode = StdinMode::pipe;
  session.interrupts.token().throw_if_cancelled();
  return invoke(machine, [&] { return run_stream(session, machine, plan); });
}

GuestExit follow_command(Session& session, const Machine& machine, const std::string& id, OutputKind output,
                         SignalProxy proxy) {
  ExecResult captured;
  auto limit = ExecOptions{}.output_limit;
  if (proxy == SignalProxy::off) {
    auto stream = machine.attach_command(id, {.cancel = session.interrupts.token()});
    return finish(pump(session, stream, output, limit, captured), std::move(captured), std::nullopt);
  }
  auto stream = machine.attach_command(id);
  GuestSignals signals(session.interrupts, stream, GuestSize::follows_ours);
  auto result = pump(session, stream, output, limit, captured);
  return finish(std::move(result), std::move(captured), signals.killed_by());
}

void lend_terminal(GuestPlan& plan) {
  plan.options.terminal = host_terminal_size();
  plan.options.env.try_emplace("TERM", host_terminal_type());
  plan.input = GuestStdin::forwarded;
}

void StreamFlags::declare(Options& options) {
  options.flag("-i,--interactive", interactive_, "Forward standard input, also from a terminal");
  options.flag("-t,--tty", tty_, "A terminal in the guest (default: when both ends of ours are terminals)");
  options.flag("-T,--no-tty", no_tty_, "No terminal in the guest");
}

void StreamFlags::apply_detached(GuestPlan& plan) const {
  if (tty_ && no_tty_) throw usage_error("--tty and --no-tty exclude each other");
  if (interactive_) {
    throw usage_error("--interactive: a detached command has no input",
                      "Write it to a file of the machine first.");
  }
  if (tty_) lend_terminal(plan);
}

void StreamFlags::apply(GuestPlan& plan, OutputKind output) const {
  if (tty_ && no_tty_) throw usage_error("--tty and --no-tty exclude each other");
  plan.output = output;
  auto choice = tty_ ? TerminalChoice::always : no_tty_ ? TerminalChoice::never : TerminalChoice::automatic;
  if (wants_terminal(choice, output)) return lend_terminal(plan);
  bool forward = interactive_ || ::isatty(STDIN_FILENO) == 0;
  plan.input = forward ? GuestStdin::forwarded : GuestStdin::empty;
}

Json guest_exit_json(const GuestExit& exit) {
  Json json = exit_json(exit);
  Json duration = json["durationMs"];
  json.erase("durationMs");
  add_output(json, "stdout", exit.result.out);
  add_output(json, "stderr", exit.result.err);
  json["stdoutTruncated"] = exit.result.out_truncated;
  json["stderrTruncated"] = exit.result.err_truncated;
  json["durationMs"] = duration;
  return json;
}

GuestExit with_exit_code_file(const Session& session, const std::optional<std::string>& file,
                              const std::function<GuestExit()>& body) {
  if (file) check_output_file("--exit-code-file", *file);
  auto write = [&](const Json& json) {
    if (!file) return;
    auto text = dump_json(json) + "\n";
    if (auto special = open_special_file(*file)) return write_all(special->get(), text);
    write_file_atomically(*file, text, {.mode = 0644});
  };
  try {
    auto exit = body();
    write(exit_json(exit));
    return exit;
  } catch (const CodedError& error) {
    write(exit_json(error.exit_code(), "holt"));
    throw;
  } catch (const Error&) {
    auto signal = session.interrupts.signal();
    write(exit_json(signal ? 128 + *signal : k_exit_engine, signal ? "signal" : "holt"));
    throw;
  }
}

}  // namespace holt::cli
