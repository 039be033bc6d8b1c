#include "workspace/local_command.hpp"

#include "holt/base/encoding.hpp"
#include "holt/base/process.hpp"
#include "holt/workspace/rules.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fmt/format.h>

namespace holt {
namespace {

using namespace std::chrono_literals;

// After the command has ended its own output is in the pipes already. What keeps one open then is a child in
// the background: it gets this long to show that it still writes.
constexpr Duration k_quiet = 50ms;
constexpr Duration k_drain = 2s;
constexpr Duration k_reap = 2s;

std::string find_on_path(const std::string& name, const std::map<std::string, std::string>& env) {
  if (name.find('/') != std::string::npos) return name;
  auto variable = env.find("PATH");
  std::string path = variable == env.end() ? "/usr/local/bin:/usr/bin:/bin" : variable->second;
  std::string not_executable;
  for (std::size_t at = 0; at <= path.size();) {
    std::size_t end = std::min(path.find(':', at), path.size());
    std::string candidate = path.substr(at, end - at) + "/" + name;
    at = end + 1;
    struct stat facts{};
    if (::stat(candidate.c_str(), &facts) != 0 || !S_ISREG(facts.st_mode)) continue;
    if (::access(candidate.c_str(), X_OK) == 0) return candidate;
    not_executable = candidate;
  }
  return not_executable;
}

/// One output of the command while it runs.
struct Stream {
  Fd fd;
  std::string bytes = {};

  /// False when there was nothing to read. Ends the stream at its end.
  bool read_some() {
    std::array<char, 65536> buffer;
    ssize_t n = ::read(fd.get(), buffer.data(), buffer.size());
    if (n < 0 && (errno == EINTR || errno == EAGAIN)) return false;
    if (n <= 0) {
      fd.reset();
      return false;
    }
    bytes.append(buffer.data(), static_cast<std::size_t>(n));
    return true;
  }
  std::string preview() const { return utf8_replace(std::string_view(bytes).substr(0, k_output_preview)); }
};

class Running {
 public:
  Running(const LocalCommand& spec, const CancellationToken& cancel)
      : spec_(spec), cancel_(cancel), deadline_(Deadline::within(spec.timeout)) {}

  CommandResult run() {
    std::vector<std::string> argv = spec_.command.argv();
    check_command(spec_.command);
    std::string program = find_on_path(argv[0], spec_.env);
    if (program.empty()) return missing(argv[0]);
    try {
      start(argv, program);
    } catch (const Error& e) {
      if (e.code() == ErrorCode::not_found) return missing(argv[0]);
      if (e.code() == ErrorCode::permission_denied) return not_executable(argv[0]);
      throw;
    }
    wait_for_end();
    drain();
    auto status = process_.wait(Deadline::after(k_reap));
    if (!status) throw WorkspaceError("the command ended, but the system does not tell how");
    return {
        .exit_code = status->shell_code(), .out = utf8_replace(out_.bytes), .err = utf8_replace(err_.bytes)};
  }

 private:
  static CommandResult missing(const std::string& program) {
    return {.exit_code = 127, .out = {}, .err = utf8_replace(program) + ": command not found\n"};
  }
  static CommandResult not_executable(const std::string& program) {
    return {.exit_code = 126, .out = {}, .err = utf8_replace(program) + ": Permission denied\n"};
  }

  void start(const std::vector<std::string>& argv, const std::string& program) {
    auto [out_read, out_write] = make_pipe();
    auto [err_read, err_write] = make_pipe();
    ::fcntl(out_read.get(), F_SETFL, O_NONBLOCK);
    ::fcntl(err_read.get(), F_SETFL, O_NONBLOCK);
    out_.fd = std::move(out_read);
    err_.fd = std::move(err_read);
    process_ = Process::start({.argv = argv,
                               .env = spec_.env,
                               .working_dir = spec_.directory,
                               .fds = {{out_write.get(), 1}, {err_write.get(), 2}},
                               .new_session = true,
                               .program = program});
  }

  /// Waits for output, the end of the command, the deadline or cancellation. False at `until`.
  bool wait_for_something(Deadline until, int pidfd) {
    std::array<struct pollfd, 4> fds{{{out_.fd.get(), POLLIN, 0},
                                      {err_.fd.get(), POLLIN, 0},
                                      {pidfd, POLLIN, 0},
                                      {cancel_.fd(), POLLIN, 0}}};
    int n = ::poll(fds.data(), fds.size(), until.poll_timeout());
    if (n < 0 && errno != EINTR) throw system_error(errno, "wait for a command");
    if (cancel_.cancelled()) {
      kill();
      cancel_.throw_if_cancelled();
    }
    if (fds[0].revents != 0) out_.read_some();
    if (fds[1].revents != 0) err_.read_some();
    if (out_.bytes.size() + err_.bytes.size() > k_max_command_output) stop_for_output();
    ended_ = ended_ || fds[2].revents != 0;
    return n != 0 || !until.passed();
  }

  void wait_for_end() {
    while (!ended_) {
      if (!wait_for_something(deadline_, process_.pidfd())) stop_for_time();
    }
  }

  void drain() {
    Deadline end = Deadline::after(k_drain);
    while ((out_.fd || err_.fd) && !end.passed()) {
      std::size_t before = out_.bytes.size() + err_.bytes.size();
      bool open_before = static_cast<bool>(out_.fd) && static_cast<bool>(err_.fd);
      wait_for_something(Deadline::after(k_quiet).earlier(end), -1);
      bool open_now = static_cast<bool>(out_.fd) && static_cast<bool>(err_.fd);
      if (out_.bytes.size() + err_.bytes.size() == before && open_before == open_now) return;
    }
  }

  void kill() {
    process_.signal(SIGKILL);
    out_.fd.reset();
    err_.fd.reset();
    process_.wait(Deadline::after(k_reap));
  }

  [[noreturn]] void stop_for_time() {
    kill();
    throw WorkspaceTimeoutError(
        fmt::format("command stopped at its timeout of {}s", seconds_text(*spec_.timeout)),
        utf8_replace(out_.bytes), utf8_replace(err_.bytes));
  }
  [[noreturn]] void stop_for_output() {
    kill();
    throw WorkspaceOutputLimitError(k_max_command_output, out_.preview(), err_.preview());
  }

  const LocalCommand& spec_;
  const CancellationToken& cancel_;
  Deadline deadline_;
  Process process_;
  Stream out_;
  Stream err_;
  bool ended_ = false;
};

}  // namespace

CommandResult run_local_command(const LocalCommand& spec, const CancellationToken& cancel) {
  return Running(spec, cancel).run();
}

}  // namespace holt
