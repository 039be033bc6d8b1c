#include "guest/command.hpp"

#include "holt/base/fd.hpp"

#include <algorithm>
#include <array>
#include <csignal>
#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include <climits>

namespace holt::guest {
namespace {

using namespace std::chrono_literals;
using protocol::FrameType;

/// How long output of background children is waited for behind the end of the command itself.
constexpr auto k_grace = 200ms;
constexpr std::size_t k_read_size = std::size_t{64} << 10;
constexpr int k_reads_a_round = 4;
/// More than the kernel holds of a terminal's output (drivers/tty/pty.c, n_tty.c); how much it is at the
/// moment nobody tells.
constexpr std::uint64_t k_terminal_buffer = std::uint64_t{64} << 10;
constexpr int k_not_found = 127;
constexpr int k_not_executable = 126;
constexpr int k_killed = 128 + SIGKILL;

std::uint64_t microseconds(Loop::Clock::duration duration) {
  return static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::microseconds>(duration).count());
}

/// What the shells say, so that programs that look for these words find them.
std::string unrunnable_text(const SpawnFailure& failure, const std::string& program) {
  bool is_bare_name = program.find('/') == std::string::npos;
  bool not_found = failure.error_number == ENOENT || failure.error_number == ENOTDIR;
  if (not_found && is_bare_name) return program + ": command not found";
  if (not_found && ::access(failure.path.c_str(), F_OK) == 0) {
    return failure.path + ": cannot execute: required file not found";
  }
  return (not_found ? program : failure.path) + ": " + std::string(error_text(failure.error_number));
}

}  // namespace

Command::Command(Loop& loop, std::unique_ptr<CommandSink> sink, std::optional<Cgroup> cgroup)
    : loop_(loop), sink_(std::move(sink)), cgroup_(std::move(cgroup)) {
  if (cgroup_) oom_kills_before_ = cgroup_->oom_kills();
  outputs_[0].type = FrameType::output;
  outputs_[1].type = FrameType::error_output;
}

Command::~Command() {
  for (auto& output : outputs_) close_output(output);
  close_input();
  loop_.cancel(timeout_);
  loop_.cancel(grace_);
}

Outcome<> Command::make_pipes(const protocol::ExecRequest& request, ChildEnds& child_ends) {
  auto pipe = [](Fd& reader, Fd& writer) {
    std::array<int, 2> ends{};
    if (::pipe2(ends.data(), O_CLOEXEC) != 0) return false;
    reader.reset(ends[0]);
    writer.reset(ends[1]);
    return true;
  };
  bool has_input = request.stdin_mode == protocol::StdinMode::stream;
  if (!has_input) child_ends[0].reset(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  bool good = has_input ? pipe(child_ends[0], input_) : static_cast<bool>(child_ends[0]);
  good = good && pipe(outputs_[0].fd, child_ends[1]) && pipe(outputs_[1].fd, child_ends[2]);
  if (!good) return refuse_errno(errno, "make the pipes of", "the command");
  for (int fd : {input_.get(), outputs_[0].fd.get(), outputs_[1].fd.get()}) {
    if (fd >= 0) ::fcntl(fd, F_SETFL, O_NONBLOCK);
  }
  return {};
}

Outcome<> Command::make_terminal(const protocol::TerminalSize& size, const Identity& user,
                                 ChildEnds& child_ends) {
  Fd master(::open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC | O_NONBLOCK));
  int locked = 0;
  bool good = master && ::ioctl(master.get(), TIOCSPTLCK, &locked) == 0;
  if (good) child_ends[0].reset(::ioctl(master.get(), TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC));
  good = good && child_ends[0];
  // A second descriptor, since input and output are watched apart.
  if (good) input_.reset(::fcntl(master.get(), F_DUPFD_CLOEXEC, 3));
  if (!good || !input_) return refuse_errno(errno, "make the terminal of", "the command");
  terminal_ = true;
  resize(size);
  // Erasing a character takes all its bytes away.
  termios settings{};
  if (::tcgetattr(child_ends[0].get(), &settings) == 0) {
    settings.c_iflag |= IUTF8;
    ::tcsetattr(child_ends[0].get(), TCSANOW, &settings);
  }
  ::fchown(child_ends[0].get(), user.uid, static_cast<gid_t>(-1));
  for (auto at : {1, 2}) child_ends[at].reset(::fcntl(child_ends[0].get(), F_DUPFD_CLOEXEC, 3));
  outputs_[0].fd = std::move(master);
  return {};
}

Outcome<> Command::limit_group(const protocol::CommandLimits& limits) {
  if (!limits.processes && !limits.memory_bytes) return {};
  if (cgroup_ && cgroup_->limit(limits.processes, limits.memory_bytes)) return {};
  return refuse(ErrorCode::not_supported, "the machine's kernel has no limits for groups of processes");
}

bool Command::start(const protocol::ExecRequest& request, SpawnPlan plan) {
  output_limit_ = request.output_limit;
  stop_signal_ = static_cast<int>(request.stop_signal);
  ChildEnds child_ends;
  auto ready = request.limits ? limit_group(*request.limits) : Outcome<>();
  if (ready) {
    ready = request.terminal ? make_terminal(*request.terminal, plan.user, child_ends)
                             : make_pipes(request, child_ends);
  }
  if (!ready) {
    finished_ = true;
    sink_->failed(ready.error());
    return false;
  }
  plan.stdin_fd = child_ends[0].get();
  plan.stdout_fd = child_ends[1].get();
  plan.stderr_fd = child_ends[2].get();
  plan.controlling_terminal = terminal_;
  plan.cgroup_fd = cgroup_ ? cgroup_->fd() : -1;
  started_ = Loop::Clock::now();
  auto pid = spawn(plan);
  if (!pid) {
    answer_unstarted(pid.error(), plan);
    return false;
  }
  pid_ = *pid;
  sink_->started(pid_);
  for (auto& output : outputs_) {
    if (!output.fd) continue;
    output.watch =
        loop_.watch(output.fd.get(), EPOLLIN, [this, &output](std::uint32_t) { on_output(output); });
  }
  if (input_) input_watch_ = loop_.watch(input_.get(), 0, [this](std::uint32_t) { pump_input(); });
  if (request.timeout_ms) {
    timeout_ = loop_.after(std::chrono::milliseconds(*request.timeout_ms), [this] { on_timeout(); });
  }
  if (terminal_ && request.stdin_mode == protocol::StdinMode::none) end_of_input();
  return true;
}

void Command::answer_unstarted(const SpawnFailure& failure, const SpawnPlan& plan) {
  finished_ = true;
  bool could_not_run = failure.stage == SpawnStage::program;
  if (could_not_run) {
    bool not_found = failure.error_number == ENOENT || failure.error_number == ENOTDIR;
    report_unrunnable(unrunnable_text(failure, plan.argv[0]), not_found ? k_not_found : k_not_executable);
    return;
  }
  if (failure.stage == SpawnStage::working_dir) {
    sink_->failed(refuse_errno(failure.error_number, "enter working directory", plan.cwd).error());
  } else if (failure.stage == SpawnStage::limits) {
    sink_->failed(refuse_errno(failure.error_number, "set the limits of", plan.argv[0]).error());
  } else if (failure.stage == SpawnStage::user) {
    sink_->failed(refuse_errno(failure.error_number, "become the user of", plan.argv[0]).error());
  } else {
    auto refused = refuse_errno(failure.error_number, "start a process for", plan.argv[0]).error();
    if (failure.error_number == EAGAIN || failure.error_number == ENOMEM) {
      refused.code = to_string(ErrorCode::limit_exceeded);
    }
    sink_->failed(refused);
  }
}

void Command::report_unrunnable(const std::string& line, int exit_code) {
  constexpr std::size_t k_max_line = 4096;
  auto text = "holt: " + line.substr(0, k_max_line) + "\n";
  protocol::ExecReply reply{.exit_code = exit_code, .stderr_bytes = text.size()};
  if (sink_->room() >= text.size()) sink_->output(FrameType::error_output, text);
  sink_->ended(reply);
}

void Command::on_output(Output& output) {
  static std::array<char, k_read_size> buffer;  // loop thread only
  for (int i = 0; i < k_reads_a_round; ++i) {
    bool keeps = !finished_ && !cancelled_ && (output_limit_ == 0 || output.total < output_limit_);
    std::size_t room = keeps ? std::min(sink_->room(), buffer.size()) : buffer.size();
    if (room == 0) {
      output.paused = true;
      loop_.change(output.watch, 0);
      return;
    }
    auto count = ::read(output.fd.get(), buffer.data(), room);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 && errno == EAGAIN) {
      output.owed = 0;
      break;
    }
    // Of a terminal EIO: nobody has it open any more.
    if (count <= 0) {
      close_output(output);
      break;
    }
    auto size = static_cast<std::size_t>(count);
    if (keeps) {
      auto kept = output_limit_ == 0 ? size : std::min<std::uint64_t>(size, output_limit_ - output.total);
      output.truncated |= kept < size;
      sink_->output(output.type, {buffer.data(), kept});
    } else {
      output.truncated = true;
    }
    output.total += size;
    output.owed -= std::min<std::uint64_t>(output.owed, size);
  }
  check_finished();
}

void Command::close_output(Output& output) {
  if (!output.fd) return;
  loop_.unwatch(output.watch);
  output.fd.reset();
  output.owed = 0;
}

void Command::on_exit(int wait_status) {
  wait_status_ = wait_status;
  ended_ = Loop::Clock::now();
  loop_.cancel(timeout_);
  close_input();
  for (auto& output : outputs_) {
    int waiting = 0;
    if (output.fd && terminal_) {
      output.owed = k_terminal_buffer;
    } else if (output.fd && ::ioctl(output.fd.get(), FIONREAD, &waiting) == 0 && waiting > 0) {
      output.owed = static_cast<std::uint64_t>(waiting);
    }
    // Most often the pipe is at its end by now, and the reply can go with the last output.
    if (output.fd && !output.paused) on_output(output);
  }
  if (!finished_)
    grace_ = loop_.after(k_grace, [this] {
      grace_over_ = true;
      check_finished();
    });
  check_finished();
}

void Command::check_finished() {
  if (finished_ || !wait_status_) return;
  bool drained = std::ranges::all_of(
      outputs_, [&](const Output& output) { return !output.fd || (grace_over_ && output.owed == 0); });
  if (drained || cancelled_) finish();
}

protocol::ExecReply Command::make_reply() const {
  protocol::ExecReply reply{.timed_out = timed_out_,
                            .stdout_truncated = outputs_[0].truncated,
                            .stderr_truncated = outputs_[1].truncated,
                            .stdout_bytes = outputs_[0].total,
                            .stderr_bytes = outputs_[1].total,
                            .duration_us = microseconds(ended_ - started_)};
  int wait_status = wait_status_.value_or(0);
  if (WIFSIGNALED(wait_status)) {
    reply.signal = WTERMSIG(wait_status);
  } else {
    reply.exit_code = WEXITSTATUS(wait_status);
  }
  // A shell whose child was killed ends with 128 and the signal.
  bool was_killed = reply.signal == SIGKILL || reply.exit_code == k_killed;
  reply.oom = was_killed && !timed_out_ && cgroup_ && cgroup_->oom_kills() > oom_kills_before_;
  return reply;
}

void Command::finish() {
  finished_ = true;
  loop_.cancel(grace_);
  if (cancelled_) {
    sink_->failed(refuse(ErrorCode::cancelled, "the command was cancelled").error());
  } else {
    sink_->ended(make_reply());
  }
  // What background children write from here on is read and dropped, so that they get no SIGPIPE.
  for (auto& output : outputs_) drop_output(output);
}

void Command::drop_output(Output& output) {
  if (!output.fd) return;
  output.paused = false;
  loop_.change(output.watch, EPOLLIN);
}

void Command::kill_all() {
  if (cgroup_) {
    cgroup_->kill();
  } else if (!wait_status_) {
    kill_descendants(pid_, SIGKILL);
  }
}

void Command::on_timeout() {
  if (wait_status_) return;
  timed_out_ = true;
  kill_all();
}

void Command::on_drained() {
  for (auto& output : outputs_) {
    if (!output.fd || !output.paused) continue;
    output.paused = false;
    loop_.change(output.watch, EPOLLIN);
  }
}

void Command::cancel() {
  if (finished_ || cancelled_) return;
  cancelled_ = true;
  kill_all();
  on_drained();
  check_finished();
}

void Command::abandon() {
  cancelled_ = true;
  finished_ = true;
  kill_all();
  for (auto& output : outputs_) drop_output(output);
}

bool Command::gone() const {
  bool silent =
      std::ranges::none_of(outputs_, [](const Output& output) { return static_cast<bool>(output.fd); });
  if (!finished_ || !silent || (pid_ > 0 && !wait_status_)) return false;
  return !cgroup_ || cgroup_->empty();
}

void Command::signal(int signal_number) {
  if (pid_ > 0 && !wait_status_) ::kill(-pid_, signal_number);
}

void Command::resize(const protocol::TerminalSize& size) {
  if (!terminal_ || !input_) return;
  auto clamped = [](std::uint32_t count) {
    return static_cast<unsigned short>(std::min<std::uint32_t>(count, USHRT_MAX));
  };
  winsize window{};
  window.ws_row = clamped(size.rows);
  window.ws_col = clamped(size.columns);
  // The kernel sends SIGWINCH when it is another size than before.
  ::ioctl(input_.get(), TIOCSWINSZ, &window);
}

void Command::feed(std::string bytes) {
  if (!input_ || input_ended_) {
    sink_->input_taken(bytes.size());
    return;
  }
  if (!bytes.empty()) input_queue_.push_back(std::move(bytes));
  pump_input();
}

void Command::end_of_input() {
  if (!input_ || input_ended_) return;
  input_ended_ = true;
  pump_input();
}

void Command::pump_input() {
  while (input_ && !input_queue_.empty()) {
    auto& front = input_queue_.front();
    auto count = ::write(input_.get(), front.data() + input_written_, front.size() - input_written_);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 && errno == EAGAIN) {
      loop_.change(input_watch_, EPOLLOUT);
      return;
    }
    if (count < 0) {
      close_input();
      return;
    }
    input_written_ += static_cast<std::size_t>(count);
    if (input_written_ < front.size()) continue;
    in_line_ = front.back() != '\n';
    sink_->input_taken(front.size());
    input_queue_.pop_front();
    input_written_ = 0;
  }
  if (!input_) return;
  loop_.change(input_watch_, 0);
  if (!input_ended_) return;
  if (terminal_) {
    type_end_of_file();
  } else {
    close_input();
  }
}

void Command::type_end_of_file() {
  if (std::exchange(end_typed_, true)) return;
  termios settings{};
  constexpr char k_usual = 4;
  char key = ::tcgetattr(input_.get(), &settings) == 0 ? static_cast<char>(settings.c_cc[VEOF]) : k_usual;
  // In the middle of a line the first one only ends the line.
  std::string keys(in_line_ ? 2 : 1, key);
  [[maybe_unused]] auto written = ::write(input_.get(), keys.data(), keys.size());
}

void Command::close_input() {
  if (!input_) return;
  loop_.unwatch(input_watch_);
  input_.reset();
  for (const auto& payload : input_queue_) sink_->input_taken(payload.size());
  input_queue_.clear();
}

}  // namespace holt::guest
