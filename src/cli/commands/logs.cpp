#include "cli/commands/commands.hpp"
#include "cli/errors.hpp"
#include "cli/machines.hpp"
#include "holt/base/encoding.hpp"

#include <cerrno>
#include <fcntl.h>
#include <poll.h>
#include <string>
#include <sys/inotify.h>
#include <unistd.h>

namespace holt::cli {
namespace {

constexpr std::size_t k_piece = std::size_t{64} << 10;
// How soon `logs -f` sees that a machine has gone without a last word.
constexpr int k_state_interval_ms = 500;

class LogsCommand : public Command {
 public:
  CommandInfo info() const override {
    return {.name = "logs",
            .group = Group::machines,
            .summary = "Print the console of a machine, also of one that was stopped",
            .usage = "[flags] NAME",
            .example = "holt logs -n 50 dev"};
  }

  void declare(Options& options) override {
    options.argument("NAME", name_, "Machine");
    options.flag("-f,--follow", follow_, "Go on until the machine stops");
    options.number("-n,--lines", "N", lines_, "The last N lines only");
    options.flag("--console", console_, "The console (the default, and the only log of this version)");
    options.later_flag("--exec", "the log of commands");
    options.later_flag("--events", "the log of events");
    options.later_flag("--network", "the log of the network");
    options.later_value("--since", "times in logs");
    options.later_flag("--timestamps", "times in logs");
  }

  Outcome run(Session& session) override {
    auto machine = find_machine(session, name_);
    Fd file(::open(machine.console_log().c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
    if (!file && errno == ENOENT && !follow_) return ToolExit{};
    if (!file) throw system_error(errno, "Open the console log", machine.name());
    print(session, tail(read_rest(file)));
    if (follow_) follow(session, machine, file);
    finish_line(session);
    return ToolExit{};
  }

 private:
  static std::string read_rest(const Fd& file) {
    std::string text;
    std::string piece(k_piece, '\0');
    while (true) {
      ssize_t count = ::read(file.get(), piece.data(), piece.size());
      if (count < 0 && errno == EINTR) continue;
      if (count < 0) throw system_error(errno, "Read the console log");
      if (count == 0) return text;
      text.append(piece, 0, static_cast<std::size_t>(count));
    }
  }

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

  /// Guest bytes unchanged, or with --json one object a line.
  void print(Session& session, const std::string& text) {
    if (!session.globals.json) return session.output.out(text);
    open_line_ += text;
    std::size_t at = 0;
    for (auto end = open_line_.find('\n'); end != std::string::npos; end = open_line_.find('\n', at)) {
      print_json_line(session, open_line_.substr(at, end - at));
      at = end + 1;
    }
    open_line_.erase(0, at);
  }

  void finish_line(Session& session) {
    if (!open_line_.empty()) print_json_line(session, std::exchange(open_line_, {}));
  }

  static void print_json_line(Session& session, std::string line) {
    if (line.ends_with('\r')) line.pop_back();
    session.output.json(
        {{"ts", nullptr}, {"source", "console"}, {"stream", "console"}, {"text", utf8_replace(line)}});
  }

  void follow(Session& session, const Machine& machine, const Fd& file) {
    Fd watch(::inotify_init1(IN_CLOEXEC | IN_NONBLOCK));
    ::inotify_add_watch(watch.get(), machine.console_log().c_str(), IN_MODIFY);
    const auto& token = session.interrupts.token();
    bool running = true;
    while (running && !token.cancelled()) {
      running = is_up(machine);
      print(session, read_rest(file));
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
             state != MachineState::created;
    } catch (const Error&) {  // removed meanwhile
      return false;
    }
  }

  std::string name_;
  std::optional<unsigned> lines_;
  bool follow_ = false;
  bool console_ = false;
  std::string open_line_;
};

}  // namespace

std::unique_ptr<Command> make_logs() {
  return std::make_unique<LogsCommand>();
}

}  // namespace holt::cli
