#include "cli/keeper.hpp"

#include "holt/base/fd.hpp"
#include "holt/base/files.hpp"
#include "holt/base/log.hpp"
#include "holt/base/process.hpp"

#include <array>
#include <cerrno>
#include <cstdlib>
#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

extern char** environ;

namespace holt::cli {
namespace {

constexpr const char* k_variable = "HOLT_KEEPER";
/// Of the keeper, where it says that its result has been printed.
constexpr int k_ready_fd = 3;
constexpr std::size_t k_longest_arguments = std::size_t{4} << 20;

std::vector<std::string> own_arguments() {
  auto text = read_file("/proc/self/cmdline", k_longest_arguments);
  std::vector<std::string> words;
  for (std::size_t at = 0; at < text.size();) {
    auto end = std::min(text.find('\0', at), text.size());
    words.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return words;
}

std::map<std::string, std::string> keeper_environment() {
  std::map<std::string, std::string> env;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    std::string_view text = *entry;
    auto equals = text.find('=');
    if (equals != std::string_view::npos) env.emplace(text.substr(0, equals), text.substr(equals + 1));
  }
  env[k_variable] = "1";
  return env;
}

/// True when the keeper said that it is ready, false when it ended.
bool wait_until_ready(int fd, const CancellationToken& cancel) {
  while (true) {
    std::array<pollfd, 2> fds{{{fd, POLLIN, 0}, {cancel.fd(), POLLIN, 0}}};
    if (::poll(fds.data(), fds.size(), -1) < 0 && errno != EINTR)
      throw system_error(errno, "wait for the start");
    cancel.throw_if_cancelled();
    if (fds[0].revents == 0) continue;
    char byte = 0;
    auto count = ::read(fd, &byte, 1);
    if (count >= 0 || errno != EINTR) return count == 1;
  }
}

/// Our streams are the caller's: whoever reads them to their end must not wait for us.
void leave_streams() {
  Fd null(::open("/dev/null", O_RDWR | O_CLOEXEC));
  for (int fd = 0; null && fd <= 2; ++fd) ::dup2(null.get(), fd);
}

}  // namespace

bool is_keeper() {
  return std::getenv(k_variable) != nullptr;
}

Outcome start_keeper(Session& session) {
  auto [ours, theirs] = make_pipe();
  auto keeper = Process::start({.argv = own_arguments(),
                                .env = keeper_environment(),
                                .fds = {{0, 0}, {1, 1}, {2, 2}, {theirs.get(), k_ready_fd}},
                                .new_session = true,
                                .program = "/proc/self/exe"});
  theirs.reset();
  if (wait_until_ready(ours.get(), session.interrupts.token())) {
    keeper.detach();
    return ToolExit{};
  }
  return ToolExit{keeper.wait(Deadline::never())
                      .value_or(ExitStatus{.exit_code = k_exit_engine, .signal = std::nullopt})
                      .shell_code()};
}

void keep_until_end(Session& session, const Machine& machine, const holt::CommandInfo& command) {
  leave_streams();
  Fd ready(k_ready_fd);
  [[maybe_unused]] auto written = ::write(ready.get(), "1", 1);
  ready.reset();
  try {
    machine.wait_command(command.id, session.call());
  } catch (const Error& error) {
    // Stopped, removed or crashed: there is nothing to keep.
    logger("cli")->debug("{}", error.what());
  }
}

}  // namespace holt::cli
