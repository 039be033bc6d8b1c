// The life of one machine behind its start: clients, pause, suspension, stop, crash, idle time, its owner's
// end.
#pragma once

#include "machine/event_log.hpp"
#include "machine/launch.hpp"
#include "machine/record.hpp"
#include "monitor/clock_watch.hpp"
#include "monitor/relay.hpp"
#include "monitor/starter.hpp"

#include <chrono>
#include <memory>
#include <optional>
#include <vector>

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>

namespace holt::monitor {

/// How a life ended.
struct Ending {
  MachineState state = MachineState::stopped;
  std::optional<MachineFailure> failure = std::nullopt;
  bool owner_ended = false;  ///< it ended because its owner did
};

/// Runs one machine on an event loop until it has ended.
class Monitor {
 public:
  /// `listener`: a listening Unix socket. `control`: the client's end, kept while it owns the machine.
  Monitor(StartedMachine started, machine::Launch launch, machine::MachineRecord record,
          machine::MachineFolder folder, machine::MachineStatus status, Fd listener, Fd control);

  /// Returns when QEMU is known to be dead, or throws Error TIMEOUT when it cannot be ended.
  Ending run();

 private:
  void accept_clients();
  void watch_vmm();
  void watch_owner();
  void owner_ended();
  void watch_signals();
  void watch_qmp();
  void take_events();
  void wait_for_space();
  void go_on();
  void write_status();
  void check_idle();
  void ask_status();
  /// True when it has been idle for `limit`.
  bool is_idle(std::optional<Duration> limit, std::chrono::steady_clock::time_point since) const;
  void set_guest_clock(std::function<void()> then);
  void note(const char* kind, const std::string& message, std::optional<ErrorCode> code = std::nullopt);

  // monitor_requests.cpp: what clients ask of the monitor itself.
  void take_request(const protocol::Request& request, Answer answer);
  void change_life(protocol::LifeChange change, Answer answer);
  void pause(const Answer& answer);
  void resume(Answer answer);
  void suspend(Answer answer);
  void await_quiet(Deadline deadline);
  void write_suspension();
  void give_up_suspension(const Error& reason);
  void keep_late_words();
  void answer_stats(Answer answer);
  void resize_disk(std::uint64_t bytes, Answer answer);

  /// `by`: who or what stops it, for those whose commands it interrupts.
  void stop(std::uint32_t grace_ms, std::string by, StopAnswer answer);
  void quit_vmm();
  void vmm_ended();
  void note_shutdown(const std::expected<std::string, Error>& reply);
  void kill_vmm();
  void fail(const Error& reason);
  void finish(Ending ending);
  void note_end(const Ending& ending);

  boost::asio::io_context loop_;
  StartedMachine started_;
  machine::Launch launch_;
  machine::MachineRecord record_;
  machine::MachineFolder folder_;
  machine::MachineStatus status_;
  boost::asio::posix::stream_descriptor listener_;
  boost::asio::posix::stream_descriptor control_;
  boost::asio::posix::stream_descriptor owner_;  ///< pidfd of the owner's process
  boost::asio::posix::stream_descriptor vmm_watch_;
  boost::asio::posix::stream_descriptor qmp_watch_;
  boost::asio::signal_set signals_;
  boost::asio::steady_timer idle_timer_;
  boost::asio::steady_timer space_timer_;
  boost::asio::steady_timer stop_timer_;
  boost::asio::steady_timer quiet_timer_;
  ClockWatch clock_;
  machine::EventLog events_;
  std::unique_ptr<Relay> relay_;
  std::vector<StopAnswer> stop_answers_;
  std::vector<Answer> suspend_answers_;
  std::chrono::steady_clock::time_point last_active_ = std::chrono::steady_clock::now();
  std::chrono::steady_clock::time_point last_client_ = std::chrono::steady_clock::now();
  bool stopping_ = false;
  std::string stopped_by_ = "a call";
  bool owner_ended_ = false;
  bool out_of_space_ = false;  ///< QEMU holds the guest until the host's disk has room
  bool asking_status_ = false;
  bool held_ = false;                              ///< paused by a client
  bool suspending_ = false;                        ///< the channel is brought to rest
  std::optional<machine::Suspension> suspension_;  ///< written: the VMM only has to end
  std::optional<MachineFailure> unflushed_;        ///< of a stop: why the disk may lack its last writes
  std::optional<Error> failure_;
  std::optional<std::string> shutdown_reason_;  ///< of QEMU's event SHUTDOWN
  std::optional<Ending> ending_;
};

}  // namespace holt::monitor
