// A command: started, fed, drained, timed, killed as a whole. Loop thread only.
#pragma once

#include "guest/cgroup.hpp"
#include "guest/loop.hpp"
#include "guest/spawn.hpp"
#include "guest/stream.hpp"
#include "holt/protocol/flow.hpp"
#include "holt/protocol/messages.hpp"

#include <array>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <sys/types.h>
#include <utility>

namespace holt::guest {

/// What of the machine a command starts from.
struct CommandDefaults {
  std::vector<protocol::Variable> env;
  std::string working_dir = "/";
  std::string user;
};

/// A request checked and turned into what spawn() takes.
Outcome<SpawnPlan> plan_command(const protocol::ExecRequest& request, const CommandDefaults& defaults);

/// One command, from its start to the moment its cgroup is empty and its pipes are closed: longer than its
/// stream, when it leaves background children behind.
class Command : public StreamHandler {
 public:
  /// The cgroup may be missing.
  Command(Loop& loop, Outlet outlet, std::optional<Cgroup> cgroup);
  ~Command() override;

  /// Sends `started`, or answers at once. False when nothing runs.
  bool start(const protocol::ExecRequest& request, SpawnPlan plan);

  /// True for the direct child of this command, while it has not been reaped: later the pid may be another's.
  bool runs_as(pid_t pid) const { return pid_ == pid && !wait_status_; }
  /// The direct child has been reaped.
  void on_exit(int wait_status);
  /// The channel takes data again.
  void on_drained();
  /// Nothing of it is left: no process, no open pipe, no stream.
  bool gone() const;
  /// The cgroup of a command that is gone, or never started.
  std::optional<Cgroup> release_cgroup() { return std::exchange(cgroup_, std::nullopt); }

  void on_frame(protocol::Frame frame) override;
  std::expected<void, protocol::ProtocolError> on_credit(std::uint32_t bytes) override;
  void on_disconnect() override;

  void kill_all();

 private:
  struct Output {
    Fd fd;
    Loop::Watch watch = Loop::Watch::none;
    protocol::FrameType type = protocol::FrameType::output;
    std::uint64_t total = 0;
    std::uint64_t owed = 0;  // bytes that were in the pipe when the child ended and are still to be read
    bool truncated = false;
    bool paused = false;
  };

  Outcome<> make_pipes(const protocol::ExecRequest& request, SpawnPlan& plan, std::array<Fd, 3>& child_ends);
  void answer_unstarted(const SpawnFailure& failure, const SpawnPlan& plan);
  void report_unrunnable(const std::string& line, int exit_code);
  void on_output(Output& output);
  void drop_output(Output& output);
  void close_output(Output& output);
  void pump_input();
  void end_input();
  void on_timeout();
  void check_finished();
  void finish();
  protocol::ExecReply make_reply() const;

  Loop& loop_;
  Outlet outlet_;
  std::optional<Cgroup> cgroup_;
  std::uint64_t oom_kills_before_ = 0;
  pid_t pid_ = -1;
  Loop::Clock::time_point started_;
  Loop::Clock::time_point ended_;
  std::optional<int> wait_status_;
  std::uint64_t output_limit_ = 0;
  std::array<Output, 2> outputs_;
  protocol::SendCredit credit_;

  Fd input_;
  Loop::Watch input_watch_ = Loop::Watch::none;
  std::deque<std::string> input_queue_;
  std::size_t input_written_ = 0;
  bool input_ended_ = false;

  Loop::Timer timeout_ = Loop::Timer::none;
  Loop::Timer grace_ = Loop::Timer::none;
  bool grace_over_ = false;
  bool timed_out_ = false;
  bool cancelled_ = false;
  bool finished_ = false;  // the stream has its final frame, or the host is gone
};

}  // namespace holt::guest
