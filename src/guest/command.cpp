#include "guest/command.hpp"

#include "holt/base/fd.hpp"

#include <algorithm>
#include <array>
#include <csignal>
#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace holt::guest {
namespace {

using namespace std::chrono_literals;
using protocol::FrameType;

/// How long output of background children is waited for behind the end of the command itself.
constexpr auto k_grace = 200ms;
constexpr std::size_t k_read_size = std::size_t{64} << 10;
constexpr int k_reads_a_round = 4;
constexpr int k_not_found = 127;
constexpr int k_not_executable = 126;

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

Command::Command(Loop& loop, Outlet outlet, std::optional<Cgroup> cgroup)
    : loop_(loop), outlet_(outlet), cgroup_(std::move(cgroup)) {
  if (cgroup_) oom_kills_before_ = cgroup_->oom_kills();
  outputs_[0].type = FrameType::output;
  outputs_[1].type = FrameType::error_output;
}

Command::~Command() {
  for (auto& output : outputs_) close_output(output);
  end_input();
  loop_.cancel(timeout_);
  loop_.cancel(grace_);
}

Outcome<> Command::make_pipes(const protocol::ExecRequest& request, SpawnPlan& plan,
                              std::array<Fd, 3>& child_ends) {
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
  if (!good) return refuse_errno(errno, "make the pipes of", plan.argv[0]);
  for (int fd : {input_.get(), outputs_[0].fd.get(), outputs_[1].fd.get()}) {
    if (fd >= 0) ::fcntl(fd, F_SETFL, O_NONBLOCK);
  }
  plan.stdin_fd = child_ends[0].get();
  plan.stdout_fd = child_ends[1].get();
  plan.stderr_fd = child_ends[2].get();
  return {};
}

bool Command::start(const protocol::ExecRequest& request, SpawnPlan plan) {
  output_limit_ = request.output_limit;
  std::array<Fd, 3> child_ends;
  if (auto pipes = make_pipes(request, plan, child_ends); !pipes) {
    finished_ = true;
    outlet_.fail(pipes.error());
    return false;
  }
  plan.cgroup_fd = cgroup_ ? cgroup_->fd() : -1;
  started_ = Loop::Clock::now();
  auto pid = spawn(plan);
  if (!pid) {
    answer_unstarted(pid.error(), plan);
    return false;
  }
  pid_ = *pid;
  outlet_.send(FrameType::started, protocol::encode(protocol::ExecStarted{.pid = pid_}));
  for (auto& output : outputs_) {
    output.watch =
        loop_.watch(output.fd.get(), EPOLLIN, [this, &output](std::uint32_t) { on_output(output); });
  }
  if (input_) input_watch_ = loop_.watch(input_.get(), 0, [this](std::uint32_t) { pump_input(); });
  if (request.timeout_ms) {
    timeout_ = loop_.after(std::chrono::milliseconds(*request.timeout_ms), [this] { on_timeout(); });
  }
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
    outlet_.fail(refuse_errno(failure.error_number, "enter working directory", plan.cwd).error());
  } else if (failure.stage == SpawnStage::user) {
    outlet_.fail(refuse_errno(failure.error_number, "become the user of", plan.argv[0]).error());
  } else {
    auto refused = refuse_errno(failure.error_number, "start a process for", plan.argv[0]).error();
    if (failure.error_number == EAGAIN || failure.error_number == ENOMEM) {
      refused.code = to_string(ErrorCode::limit_exceeded);
    }
    outlet_.fail(refused);
  }
}

void Command::report_unrunnable(const std::string& line, int exit_code) {
  constexpr std::size_t k_max_line = 4096;
  auto text = "holt: " + line.substr(0, k_max_line) + "\n";
  protocol::ExecReply reply{.exit_code = exit_code, .stderr_bytes = text.size()};
  outlet_.send(FrameType::error_output, std::move(text));
  outlet_.reply(reply);
}

void Command::on_output(Output& output) {
  static std::array<char, k_read_size> buffer;  // loop thread only
  for (int i = 0; i < k_reads_a_round; ++i) {
    bool keeps = !finished_ && !cancelled_ && (output_limit_ == 0 || output.total < output_limit_);
    std::size_t room = keeps ? std::min(credit_.payload_room(), buffer.size()) : buffer.size();
    if (room == 0 || (keeps && outlet_.congested())) {
      output.paused = true;
      loop_.change(output.watch, 0);
      return;
    }
    auto count = ::read(output.fd.get(), buffer.data(), room);
    if (count < 0 && (errno == EAGAIN || errno == EINTR)) break;
    if (count <= 0) {
      close_output(output);
      break;
    }
    auto size = static_cast<std::size_t>(count);
    if (keeps) {
      auto kept = output_limit_ == 0 ? size : std::min<std::uint64_t>(size, output_limit_ - output.total);
      output.truncated |= kept < size;
      credit_.spend(kept);
      outlet_.send(output.type, std::string(buffer.data(), kept));
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
  end_input();
  for (auto& output : outputs_) {
    int waiting = 0;
    if (output.fd && ::ioctl(output.fd.get(), FIONREAD, &waiting) == 0 && waiting > 0) {
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
  if (WIFSIGNALED(*wait_status_)) {
    reply.signal = WTERMSIG(*wait_status_);
  } else {
    reply.exit_code = WEXITSTATUS(*wait_status_);
  }
  reply.oom = reply.signal == SIGKILL && !timed_out_ && cgroup_ && cgroup_->oom_kills() > oom_kills_before_;
  return reply;
}

void Command::finish() {
  finished_ = true;
  loop_.cancel(grace_);
  if (cancelled_) {
    outlet_.fail(refuse(ErrorCode::cancelled, "the command was cancelled").error());
  } else {
    outlet_.reply(make_reply());
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

std::expected<void, protocol::ProtocolError> Command::on_credit(std::uint32_t bytes) {
  auto granted = credit_.grant(bytes);
  if (granted) on_drained();
  return granted;
}

void Command::on_disconnect() {
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

void Command::on_frame(protocol::Frame frame) {
  switch (frame.header.type) {
    case FrameType::input:
      if (!input_) {
        outlet_.release(frame.payload.size());
      } else {
        if (!frame.payload.empty()) input_queue_.push_back(std::move(frame.payload));
        if (frame.header.has(protocol::FrameFlag::end_of_data)) input_ended_ = true;
        pump_input();
      }
      break;
    case FrameType::cancel:
      if (finished_ || cancelled_) break;
      cancelled_ = true;
      kill_all();
      on_drained();
      check_finished();
      break;
    case FrameType::signal:
      if (!wait_status_ && frame.payload.size() == 1) ::kill(-pid_, frame.payload[0]);
      break;
    default:
      break;
  }
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
      end_input();
      return;
    }
    input_written_ += static_cast<std::size_t>(count);
    if (input_written_ < front.size()) continue;
    outlet_.release(front.size());
    input_queue_.pop_front();
    input_written_ = 0;
  }
  if (!input_) return;
  loop_.change(input_watch_, 0);
  if (input_ended_) end_input();
}

void Command::end_input() {
  if (!input_) return;
  loop_.unwatch(input_watch_);
  input_.reset();
  for (const auto& payload : input_queue_) outlet_.release(payload.size());
  input_queue_.clear();
}

}  // namespace holt::guest
