// One connection's streams: takes frames from the channel, starts operations, sends what they answer. Loop
// thread only.
#pragma once

#include "guest/background.hpp"
#include "guest/cgroup.hpp"
#include "guest/channel.hpp"
#include "guest/command.hpp"
#include "guest/file_service.hpp"
#include "guest/jobs.hpp"
#include "guest/stream.hpp"
#include "holt/protocol/flow.hpp"
#include "holt/protocol/messages.hpp"

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace holt::guest {

/// What differs between PID 1 in a machine and a process that serves a socket on the host.
class Platform {
 public:
  virtual ~Platform() = default;
  /// Makes the identity real. May replace the program by itself, and not return.
  virtual Outcome<protocol::IdentityReply> become(const protocol::IdentityRequest& request,
                                                  std::uint32_t stream) = 0;
  virtual Outcome<> set_clock(std::int64_t wall_clock_ns) = 0;
  /// Takes fresh entropy and the wall clock behind a resume.
  virtual Outcome<> renew(const protocol::RenewRequest& request) = 0;
  virtual bool may_freeze() const = 0;
};

class Server {
 public:
  Server(Loop& loop, Channel& channel, Platform& platform, CgroupTree cgroups);

  void start();
  /// Says hello unasked: this guest is up.
  void say_hello();
  /// Answers an identity request that an earlier life of this program received.
  void finish_identity(std::uint32_t stream, const protocol::IdentityRequest& request,
                       Outcome<protocol::IdentityReply> outcome);
  /// Reaps every child that has ended.
  void reap();

  // For Outlet.
  void send(const Outlet& outlet, protocol::FrameType type, std::string payload);
  void release(const Outlet& outlet, std::size_t payload);
  bool congested() const { return channel_.backlog() > k_high_water; }

 private:
  struct Open {
    std::shared_ptr<StreamHandler> handler;
    protocol::ReceiveWindow window;
  };
  void on_frame(protocol::Frame frame);
  void on_connection_frame(protocol::Frame& frame);
  void on_request(protocol::Frame& frame);
  void on_stream_frame(protocol::Frame frame);
  void on_reset();
  void on_drained();

  void dispatch(const protocol::Request& request, Outlet outlet);
  void begin_exec(const protocol::ExecRequest& request, Outlet outlet);
  /// What a repeat of a request with a key finds; null for others.
  Outcome<std::shared_ptr<BackgroundCommand>> record_of(const protocol::ExecRequest& request);
  bool run(const std::shared_ptr<Command>& command, const protocol::ExecRequest& request, SpawnPlan plan);
  /// False for requests that are not about background commands.
  bool begin_background(const protocol::Request& request, Outlet outlet);
  void start_background(const protocol::StartCommandRequest& request, Outlet outlet);
  static void signal_background(const BackgroundCommand& command,
                                const protocol::SignalCommandRequest& request, Outlet outlet);
  void view_background(const std::shared_ptr<CommandViewer>& viewer, Outlet outlet);
  void begin_identity(const protocol::IdentityRequest& request, Outlet outlet);
  void begin_job(Outlet outlet, JobHub::Job job, JobHub::Urgency urgency = JobHub::Urgency::normal);
  void begin_renew(const protocol::RenewRequest& request, Outlet outlet);
  void begin_shutdown(const protocol::ShutdownRequest& request, Outlet outlet);
  protocol::StatusReply status();
  void sweep();

  Loop& loop_;
  Channel& channel_;
  Platform& platform_;
  CgroupTree cgroups_;
  FileService files_;
  CommandDefaults defaults_;
  std::string generation_;
  std::string root_device_;
  bool has_identity_ = false;
  bool stopping_ = false;
  bool sweep_pending_ = false;
  std::uint64_t connection_ = 1;
  std::map<std::uint32_t, Open> streams_;
  std::vector<std::shared_ptr<Command>> commands_;  // also of the background
  BackgroundCommands background_;
  JobHub jobs_;
};

}  // namespace holt::guest
