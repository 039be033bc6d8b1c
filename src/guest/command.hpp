// A command: started, fed, drained, timed, killed as a whole. Loop thread only.
#pragma once

#include "guest/cgroup.hpp"
#include "guest/command_sink.hpp"
#include "guest/loop.hpp"
#include "guest/spawn.hpp"
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
/// sink has anything to do, when it leaves background children behind.
class Command {
 public:
  /// The cgroup may be missing.
  Command(Loop& loop, std::unique_ptr<CommandSink> sink, std::optional<Cgroup> cgroup);
  ~Command();
  Command(const Command&) = delete;
  Command& operator=(const Command&) = delete;

  /// Tells the sink that it has started, or how it ended at once. False when nothing runs.
  bool start(const protocol::ExecRequest& request, SpawnPlan plan);

  /// True for the direct child of this command, while it has not been reaped: later the pid may be another's.
  bool runs_as(pid_t pid) const { return pid_ == pid && !wait_status_; }
  /// The direct child has been reaped.
  void on_exit(int wait_status);
  /// The sink may have room again.
  void on_drained();
  /// What its processes are asked to end with when the machine stops; 0: SIGTERM.
  int stop_signal() const { return stop_signal_; }
  /// Empty without a cgroup.
  std::string cgroup_folder() const { return cgroup_ ? cgroup_->path() : std::string(); }
  /// Nothing of it is left: no process, no open pipe, nothing to tell.
  bool gone() const;
  /// The cgroup of a command that is gone, or never started.
  std::optional<Cgroup> release_cgroup() { return std::exchange(cgroup_, std::nullopt); }

  void feed(std::string bytes);
  void end_of_input();
  /// To the process group of the direct child, while that lives.
  void signal(int signal_number);
  void resize(const protocol::TerminalSize& size);
  /// Kills it; the sink gets the failure CANCELLED.
  void cancel();
  /// Nobody listens any more: kills it and tells nothing.
  void abandon();
  /// Kills all its processes, also those that its end left behind.
  void kill_all();

 private:
  struct Output {
    Fd fd;
    Loop::Watch watch = Loop::Watch::none;
    protocol::FrameType type = protocol::FrameType::output;
    std::uint64_t total = 0;
    std::uint64_t owed = 0;  // bytes that were there when the child ended and are still to be read
    bool truncated = false;
    bool paused = false;
  };
  using ChildEnds = std::array<Fd, 3>;

  Outcome<> make_pipes(const protocol::ExecRequest& request, ChildEnds& child_ends);
  Outcome<> make_terminal(const protocol::TerminalSize& size, const Identity& user, ChildEnds& child_ends);
  Outcome<> limit_group(const protocol::CommandLimits& limits);
  void answer_unstarted(const SpawnFailure& failure, const SpawnPlan& plan);
  void report_unrunnable(const std::string& line, int exit_code);
  void on_output(Output& output);
  void drop_output(Output& output);
  void close_output(Output& output);
  void pump_input();
  void type_end_of_file();
  void close_input();
  void on_timeout();
  void check_finished();
  void finish();
  protocol::ExecReply make_reply() const;

  Loop& loop_;
  std::unique_ptr<CommandSink> sink_;
  std::optional<Cgroup> cgroup_;
  std::uint64_t oom_kills_before_ = 0;
  pid_t pid_ = -1;
  Loop::Clock::time_point started_;
  Loop::Clock::time_point ended_;
  std::optional<int> wait_status_;
  std::uint64_t output_limit_ = 0;
  int stop_signal_ = 0;
  std::array<Output, 2> outputs_;

  bool terminal_ = false;
  Fd input_;  // of a terminal a second descriptor
  Loop::Watch input_watch_ = Loop::Watch::none;
  std::deque<std::string> input_queue_;
  std::size_t input_written_ = 0;
  bool input_ended_ = false;
  bool in_line_ = false;    // what was typed last was no line's end
  bool end_typed_ = false;  // into a terminal

  Loop::Timer timeout_ = Loop::Timer::none;
  Loop::Timer grace_ = Loop::Timer::none;
  bool grace_over_ = false;
  bool timed_out_ = false;
  bool cancelled_ = false;
  bool finished_ = false;  // the sink has had its last call
};

}  // namespace holt::guest
