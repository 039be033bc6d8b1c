#include "cli/command_logs.hpp"
#include "cli/commands/commands.hpp"
#include "cli/errors.hpp"
#include "cli/log_file.hpp"
#include "cli/machines.hpp"
#include "holt/base/encoding.hpp"
#include "holt/base/time.hpp"

#include <chrono>
#include <poll.h>
#include <string>
#include <sys/inotify.h>
#include <unistd.h>

#include <fmt/format.h>

namespace holt::cli {
namespace {

constexpr std::size_t k_longest_message = 1000;
// How soon `logs -f` sees that a machine has gone without a last word.
constexpr int k_state_interval_ms = 500;

class LogsCommand : public Command {
 public:
  enum class Log { chosen, console_to_come, events };
  explicit LogsCommand(Log log = Log::chosen, std::string name = {})
      : log_(log), name_(std::move(name)), follow_(log == Log::console_to_come), events_(log == Log::events) {
    if (follow_) lines_ = 0;
  }

  CommandInfo info() const override {
    if (log_ == Log::events) {
      return {.name = "events",
              .group = Group::machines,
              .summary = "Print what happened to a machine: 'logs --events'",
              .usage = "[flags] NAME",
              .examples = {"holt events -f dev"}};
    }
    return {.name = "logs",
            .group = Group::machines,
            .summary = "Print the console or the events of a machine, also of one that was stopped",
            .usage = "[flags] NAME",
            .examples = {"holt logs -n 50 dev"}};
  }

  void declare(Options& options) override {
    options.argument("NAME", name_, "Machine");
    options.flag("-f,--follow", follow_, "Go on until the machine stops");
    options.number("-n,--lines", "N", lines_, "The last N lines only");
    options.duration("--since", since_, "Of events: only what happened in so long until now");
    if (log_ == Log::events) return;
    options.flag("--console", console_, "The console (the default)");
    options.flag("--events", events_, "What happened to the machine: starts, stops, failures, with times");
    options.flag("--exec", exec_, "What background commands have written, while the machine runs");
    options.later_flag("--network", "the log of the network");
    options.later_flag("--timestamps", "times in the console log");
  }

  Outcome run(Session& session) override {
    if (console_ + events_ + exec_ > 1) throw usage_error("give one of --console, --events and --exec");
    if (since_ && !events_) throw usage_error("--since needs --events: the console has no times");
    auto machine = find_machine(session, name_);
    if (exec_) {
      if (lines_) throw usage_error("--exec prints all; --lines is for the other logs");
      print_command_logs(session, machine, follow_ ? Follow::yes : Follow::no);
      return ToolExit{};
    }
    const auto path = events_ ? machine.event_log() : machine.console_log();
    if (since_) begin_ = wall_now() - std::chrono::duration_cast<std::chrono::microseconds>(*since_);
    LogFile log(path);
    print(session, tail(log.read()));
    if (follow_) follow(session, machine, log);
    finish_line(session);
    return ToolExit{};
  }

 private:
  std::string tail(std::string text) const {
    if (!lines_) return text;
    std::size_t at = text.size();
    unsigned seen = 0;
    while (at > 0) {
      bool line_end = text[at - 1] == '\n' && at != text.size();
      if (line_end && ++seen == *lines_) break;
      --at;
    }
    return *lines_ == 0 ? std::string() : text.substr(at);
  }

  /// Guest bytes unchanged; with --json one object a line, and on a terminal lines that cannot command it.
  void print(Session& session, const std::string& text) {
    if (!is_by_line(session)) return session.output.out(text);
    open_line_ += text;
    std::size_t at = 0;
    for (auto end = open_line_.find('\n'); end != std::string::npos; end = open_line_.find('\n', at)) {
      print_line(session, open_line_.substr(at, end - at));
      at = end + 1;
    }
    open_line_.erase(0, at);
  }

  bool is_by_line(const Session& session) const {
    return session.globals.json || events_ || session.output.out_is_terminal();
  }

  void print_line(Session& session, const std::string& line) const {
    if (!events_) return print_console_line(session, line);
    auto event = parse_json(line);
    if (!event || !event->is_object()) return;
    auto at = event->value("atUs", Json(0));
    if (!at.is_number_integer() || at.get<std::int64_t>() < begin_.time_since_epoch().count()) return;
    auto text = [&](const char* name) {
      auto value = event->value(name, Json());
      return value.is_string() ? printable(value.get<std::string>(), k_longest_message) : std::string();
    };
    if (session.globals.json) {
      return session.output.json(
          {{"ts", text("at")}, {"source", "events"}, {"stream", text("kind")}, {"text", text("message")}});
    }
    session.output.line(fmt::format("{} {} {}", text("at"), text("kind"), text("message")));
  }

  void finish_line(Session& session) {
    if (events_) return;
    if (!open_line_.empty()) print_console_line(session, std::exchange(open_line_, {}));
  }

  static void print_console_line(Session& session, std::string line) {
    if (line.ends_with('\r')) line.pop_back();
    if (!session.globals.json) return session.output.line(printable(line, line.size()));
    session.output.json(
        {{"ts", nullptr}, {"source", "console"}, {"stream", "console"}, {"text", utf8_replace(line)}});
  }

  void follow(Session& session, const Machine& machine, LogFile& log) {
    Fd watch(::inotify_init1(IN_CLOEXEC | IN_NONBLOCK));
    // A log that comes, or begins anew, is an event of its folder.
    ::inotify_add_watch(watch.get(), log.path().parent_path().c_str(), IN_MODIFY | IN_MOVED_TO | IN_CREATE);
    const auto& token = session.interrupts.token();
    bool running = true;
    while (running && !token.cancelled()) {
      running = is_up(machine);
      print(session, log.read());
      pollfd fds[2] = {{.fd = watch.get(), .events = POLLIN, .revents = 0},
                       {.fd = token.fd(), .events = POLLIN, .revents = 0}};
      ::poll(fds, 2, running ? k_state_interval_ms : 0);
      char events[4096];
      while (::read(watch.get(), events, sizeof events) > 0) {
      }
    }
    token.throw_if_cancelled();
  }

  static bool is_up(const Machine& machine) {
    try {
      auto state = machine.state();
      return state != MachineState::stopped && state != MachineState::failed &&
             state != MachineState::created && state != MachineState::suspended;
    } catch (const Error&) {  // removed meanwhile
      return false;
    }
  }

  Log log_;
  std::string name_;
  std::optional<unsigned> lines_;
  bool follow_;
  bool console_ = false;
  bool events_;
  bool exec_ = false;
  std::optional<Duration> since_;
  WallTime begin_{};
  std::string open_line_;
};

}  // namespace

std::unique_ptr<Command> make_events() {
  return std::make_unique<LogsCommand>(LogsCommand::Log::events);
}

Outcome follow_console(Session& session, const std::string& name) {
  return LogsCommand(LogsCommand::Log::console_to_come, name).run(session);
}

std::unique_ptr<Command> make_logs() {
  return std::make_unique<LogsCommand>();
}

}  // namespace holt::cli
