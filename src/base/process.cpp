#include "holt/base/process.hpp"

#include "holt/base/error.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fmt/format.h>

namespace holt {
namespace {

std::string find_program(const std::string& name) {
  if (name.empty()) throw InvalidArgument("A process needs a program: argv is empty");
  if (name.find('/') != std::string::npos) return name;
  const char* variable = std::getenv("PATH");
  std::string path = variable != nullptr ? variable : "/usr/local/bin:/usr/bin:/bin";
  for (std::size_t at = 0; at <= path.size();) {
    std::size_t end = std::min(path.find(':', at), path.size());
    std::string candidate = path.substr(at, end - at) + "/" + name;
    if (end > at && ::access(candidate.c_str(), X_OK) == 0) return candidate;
    at = end + 1;
  }
  throw Error(ErrorCode::not_found, fmt::format("The program {} is not on the PATH", name),
              {.subject = name});
}

std::vector<char*> pointers(const std::vector<std::string>& texts) {
  std::vector<char*> out;
  out.reserve(texts.size() + 1);
  for (const auto& text : texts) out.push_back(const_cast<char*>(text.c_str()));
  out.push_back(nullptr);
  return out;
}

int pidfd_open(pid_t pid) {
  return static_cast<int>(::syscall(SYS_pidfd_open, pid, 0));
}

/// What the child needs after fork, all of it made before: nothing here allocates.
struct Launch {
  const char* program;
  char* const* argv;
  char* const* env;
  const char* working_dir;
  std::vector<std::pair<int, int>> fds;  // copies of the caller's descriptors, above every target
  int error_fd;
  int report_fd;  // the parent's end of it
  int keep_from;  // first descriptor above the targets
  bool new_session;
  bool die_with_parent;
  const ChildStage* stage;
};

[[noreturn]] void fail(const Launch& launch, int stage, int step = 0) {
  std::array<int, 3> report{stage, errno, step};
  [[maybe_unused]] ssize_t n = ::write(launch.error_fd, report.data(), sizeof report);
  ::_exit(127);
}
constexpr int k_stage_set_up = 0;
constexpr int k_stage_directory = 1;
constexpr int k_stage_program = 2;
constexpr int k_stage_own = 3;

/// Whether nobody reads the report of failure any more. The parent's pid tells nothing here: a child in a
/// process namespace of its own does not see it.
bool parent_is_gone(const Launch& launch) {
  struct pollfd report{launch.error_fd, POLLOUT, 0};
  return ::poll(&report, 1, 0) == 1 && (report.revents & POLLERR) != 0;
}

[[noreturn]] void become(const Launch& launch) {
  // Held here, it would hide that the parent is gone.
  ::close(launch.report_fd);
  if (launch.new_session && ::setsid() < 0) fail(launch, k_stage_set_up);
  for (int signal_number = 1; signal_number < NSIG; ++signal_number) ::signal(signal_number, SIG_DFL);
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);

  std::array<bool, 3> given{};
  for (const auto& [copy, target] : launch.fds) {
    if (::dup2(copy, target) < 0) fail(launch, k_stage_set_up);
    if (target < 3) given[static_cast<std::size_t>(target)] = true;
  }
  for (int target = 0; target < 3; ++target) {
    if (given[static_cast<std::size_t>(target)]) continue;
    int null = ::open("/dev/null", O_RDWR);
    if (null < 0) fail(launch, k_stage_set_up);
    if (null != target) {
      if (::dup2(null, target) < 0) fail(launch, k_stage_set_up);
      ::close(null);
    }
  }
  // Everything that is not a target closes at exec.
  ::syscall(SYS_close_range, launch.keep_from, ~0U, 1U << 2 /* CLOSE_RANGE_CLOEXEC */);
  for (int fd = 3; fd < launch.keep_from; ++fd) {
    bool wanted = false;
    for (const auto& [copy, target] : launch.fds) wanted = wanted || target == fd;
    if (!wanted) ::fcntl(fd, F_SETFD, FD_CLOEXEC);
  }
  if (launch.stage != nullptr) {
    if (int step = launch.stage->run(); step != 0) fail(launch, k_stage_own, step);
  }
  if (*launch.working_dir != '\0' && ::chdir(launch.working_dir) != 0) fail(launch, k_stage_directory);
  // Last: a change of user takes the signal away.
  if (launch.die_with_parent) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (parent_is_gone(launch)) ::_exit(127);
  }
  ::execve(launch.program, launch.argv, launch.env);
  fail(launch, k_stage_program);
}

Error start_error(int error_number, const ProcessSpec& spec) {
  auto action = fmt::format("start {}", spec.argv[0]);
  if (error_number != EAGAIN) return system_error(error_number, action, spec.argv[0]);
  return {
      ErrorCode::limit_exceeded,
      fmt::format("{}: no more processes may be started", action),
      {.subject = spec.argv[0],
       .hint = "The limit of processes of the user or the container is reached ('ulimit -u', pids.max)."}};
}

void throw_if_failed(const Fd& report_pipe, const ProcessSpec& spec) {
  std::array<int, 3> report{};
  ssize_t n = 0;
  do {
    n = ::read(report_pipe.get(), report.data(), sizeof report);
  } while (n < 0 && errno == EINTR);
  if (n != sizeof report) return;
  if (report[0] == k_stage_directory) {
    throw system_error(report[1], fmt::format("enter the folder {}", spec.working_dir), spec.working_dir);
  }
  if (report[0] == k_stage_own) {
    throw ChildStageError(report[2], report[1],
                          fmt::format("Could not set up the process of {}: step {}: {}", spec.argv[0],
                                      report[2], std::strerror(report[1])));
  }
  throw start_error(report[1], spec);
}

/// fork(), with namespaces where they are asked for.
pid_t fork_child(unsigned long namespaces) {
  if (namespaces == 0) return ::fork();
  return static_cast<pid_t>(::syscall(SYS_clone, namespaces | SIGCHLD, nullptr, nullptr, nullptr, 0UL));
}

ExitStatus status_of(const siginfo_t& info) {
  if (info.si_code == CLD_EXITED) return {.exit_code = info.si_status, .signal = std::nullopt};
  return {.exit_code = std::nullopt, .signal = info.si_status};
}

}  // namespace

Process Process::start(const ProcessSpec& spec) {
  if (spec.argv.empty()) throw InvalidArgument("A process needs a program: argv is empty");
  std::string program = spec.program.empty() ? find_program(spec.argv[0]) : spec.program;
  std::vector<std::string> env_texts;
  env_texts.reserve(spec.env.size());
  for (const auto& [name, value] : spec.env) env_texts.push_back(fmt::format("{}={}", name, value));
  auto argv = pointers(spec.argv);
  auto env = pointers(env_texts);

  int above = 3;
  for (const auto& [here, target] : spec.fds) above = std::max(above, target + 1);
  auto [report_end, error_end] = make_pipe();
  std::vector<Fd> copies;
  auto copy_above = [&](int fd) {
    copies.emplace_back(::fcntl(fd, F_DUPFD_CLOEXEC, above));
    if (!copies.back()) throw system_error(errno, "duplicate a descriptor");
    return copies.back().get();
  };
  Launch launch{.program = program.c_str(),
                .argv = argv.data(),
                .env = env.data(),
                .working_dir = spec.working_dir.c_str(),
                .fds = {},
                .error_fd = copy_above(error_end.get()),
                .report_fd = report_end.get(),
                .keep_from = above,
                .new_session = spec.new_session,
                .die_with_parent = spec.die_with_parent,
                .stage = spec.stage};
  for (const auto& [here, target] : spec.fds) launch.fds.emplace_back(copy_above(here), target);

  pid_t pid = fork_child(spec.namespaces);
  if (pid < 0 && spec.namespaces != 0) {
    throw ChildStageError(
        ChildStageError::k_namespaces, errno,
        fmt::format("Could not make the namespaces of {}: {}", spec.argv[0], std::strerror(errno)));
  }
  if (pid < 0) throw start_error(errno, spec);
  if (pid == 0) become(launch);
  Process process;
  process.pid_ = pid;
  process.group_ = spec.new_session;
  process.pidfd_ = Fd(pidfd_open(pid));
  if (!process.pidfd_) {
    int error = errno;
    // Nothing could tell its end: it must not live on.
    ::kill(pid, SIGKILL);
    while (::waitpid(pid, nullptr, 0) < 0 && errno == EINTR) continue;
    process.detach();
    throw system_error(error, fmt::format("watch {}", spec.argv[0]), spec.argv[0]);
  }
  copies.clear();
  error_end.reset();
  throw_if_failed(report_end, spec);
  return process;
}

Process::Process(Process&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)),
      pidfd_(std::move(other.pidfd_)),
      group_(other.group_),
      ended_(other.ended_) {}

Process& Process::operator=(Process&& other) noexcept {
  if (this != &other) {
    Process old(std::move(*this));
    pid_ = std::exchange(other.pid_, -1);
    pidfd_ = std::move(other.pidfd_);
    group_ = other.group_;
    ended_ = other.ended_;
  }
  return *this;
}

Process::~Process() {
  if (pid_ < 0 || ended_) return;
  signal(SIGKILL);
  wait(Deadline::never());
}

std::optional<ExitStatus> Process::wait(Deadline deadline) {
  while (!ended_) {
    struct pollfd ready{pidfd_.get(), POLLIN, 0};
    int n = ::poll(&ready, 1, deadline.poll_timeout());
    if (n < 0 && errno != EINTR) throw system_error(errno, "wait for a process");
    if (n == 0 && deadline.passed()) return std::nullopt;
    if (n <= 0) continue;
    siginfo_t info{};
    if (::waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED) == 0) {
      ended_ = status_of(info);
    } else if (errno == ECHILD) {
      ended_ = ExitStatus{};  // reaped by somebody else: how it ended is lost
    }
  }
  return ended_;
}

void Process::signal(int signal_number) const {
  if (pid_ < 0 || ended_) return;
  // Not yet reaped, so the pid and the group are still its own.
  ::kill(group_ ? -pid_ : pid_, signal_number);
}

void Process::detach() {
  pid_ = -1;
  pidfd_.reset();
}

namespace {

/// One direction of a child's stdio while run_process() waits.
struct Capture {
  Fd fd;
  std::string* text;
};

void read_some(Capture& capture, std::size_t limit, const std::string& program) {
  std::array<char, 65536> buffer;
  ssize_t n = ::read(capture.fd.get(), buffer.data(), buffer.size());
  if (n < 0 && (errno == EINTR || errno == EAGAIN)) return;
  if (n <= 0) return capture.fd.reset();
  if (capture.text->size() + static_cast<std::size_t>(n) > limit) {
    throw Error(ErrorCode::limit_exceeded, fmt::format("{} printed more than {} bytes", program, limit));
  }
  capture.text->append(buffer.data(), static_cast<std::size_t>(n));
}

/// Keeps the SIGPIPE of a write to a child that has stopped reading away from the host program.
class SigpipeShield {
 public:
  SigpipeShield() {
    sigemptyset(&pipe_);
    sigaddset(&pipe_, SIGPIPE);
    ::pthread_sigmask(SIG_BLOCK, &pipe_, &before_);
  }
  ~SigpipeShield() {
    struct timespec no_wait{};
    if (!sigismember(&before_, SIGPIPE)) ::sigtimedwait(&pipe_, nullptr, &no_wait);
    ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  SigpipeShield(const SigpipeShield&) = delete;
  SigpipeShield& operator=(const SigpipeShield&) = delete;

 private:
  sigset_t pipe_{};
  sigset_t before_{};
};

void write_some(Fd& fd, std::string_view& input) {
  SigpipeShield shield;
  ssize_t n = input.empty() ? 0 : ::write(fd.get(), input.data(), input.size());
  if (n < 0 && (errno == EINTR || errno == EAGAIN)) return;
  if (n > 0) input.remove_prefix(static_cast<std::size_t>(n));
  if (n < 0 || input.empty()) fd.reset();
}

}  // namespace

ProcessResult run_process(ProcessSpec spec, const RunLimits& limits) {
  auto [in_read, in_write] = make_pipe();
  auto [out_read, out_write] = make_pipe();
  auto [err_read, err_write] = make_pipe();
  spec.fds.insert(spec.fds.end(), {{in_read.get(), 0}, {out_write.get(), 1}, {err_write.get(), 2}});
  spec.new_session = true;
  std::string program = spec.argv.empty() ? "" : spec.argv[0];
  Process process = Process::start(spec);
  in_read.reset();
  out_write.reset();
  err_write.reset();
  ::fcntl(in_write.get(), F_SETFL, O_NONBLOCK);

  ProcessResult result;
  Capture out{std::move(out_read), &result.out};
  Capture err{std::move(err_read), &result.err};
  std::string_view input = limits.input;
  if (input.empty()) in_write.reset();
  while (out.fd || err.fd) {
    std::array<struct pollfd, 4> fds{{{in_write.get(), POLLOUT, 0},
                                      {out.fd.get(), POLLIN, 0},
                                      {err.fd.get(), POLLIN, 0},
                                      {limits.cancel ? limits.cancel->fd() : -1, POLLIN, 0}}};
    int n = ::poll(fds.data(), fds.size(), limits.deadline.poll_timeout());
    if (n < 0 && errno != EINTR) throw system_error(errno, "wait for a process");
    if (limits.cancel) limits.cancel->throw_if_cancelled();
    if (n == 0) throw Error(ErrorCode::timeout, fmt::format("{} did not end in time", program));
    if (fds[0].revents != 0) write_some(in_write, input);
    if (fds[1].revents != 0) read_some(out, limits.output_limit, program);
    if (fds[2].revents != 0) read_some(err, limits.output_limit, program);
  }
  auto status = process.wait(limits.deadline);
  if (!status) throw Error(ErrorCode::timeout, fmt::format("{} did not end in time", program));
  result.status = *status;
  return result;
}

}  // namespace holt
