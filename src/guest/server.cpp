#include "guest/server.hpp"

#include "guest/command_stream.hpp"
#include "guest/maintenance.hpp"
#include "guest/root.hpp"
#include "guest/version.hpp"

#include <algorithm>
#include <csignal>
#include <sys/wait.h>

namespace holt::guest {
namespace {

using namespace std::chrono_literals;
using protocol::FrameType;

/// File operations at work at one time; commands are not counted.
constexpr std::size_t k_max_jobs = 64;
constexpr std::size_t k_max_streams = 1024;

}  // namespace

void Outlet::send(FrameType type, std::string payload) const {
  server_->send(*this, type, std::move(payload));
}
void Outlet::release(std::size_t payload) const {
  server_->release(*this, payload);
}
bool Outlet::congested() const {
  return server_->congested();
}

Server::Server(Loop& loop, Channel& channel, Platform& platform, CgroupTree cgroups)
    : loop_(loop),
      channel_(channel),
      platform_(platform),
      cgroups_(std::move(cgroups)),
      jobs_(loop, k_max_jobs) {}

void Server::start() {
  channel_.start({.on_frame = [this](protocol::Frame frame) { on_frame(std::move(frame)); },
                  .on_reset = [this] { on_reset(); },
                  .on_drained = [this] { on_drained(); }});
}

void Server::say_hello() {
  protocol::Hello hello{.program = std::string(k_program), .generation = generation_};
  channel_.send({.type = FrameType::hello}, protocol::encode(hello));
}

void Server::on_reset() {
  ++connection_;
  auto streams = std::move(streams_);
  streams_.clear();
  for (auto& [id, open] : streams) {
    if (open.handler) open.handler->on_disconnect();
  }
}

void Server::on_drained() {
  for (auto& command : commands_) command->on_drained();
  background_.on_drained();
  jobs_.on_drained();
}

void Server::send(const Outlet& outlet, FrameType type, std::string payload) {
  auto found = streams_.find(outlet.stream());
  if (outlet.connection() != connection_ || found == streams_.end()) return;
  channel_.send({.type = type, .stream = outlet.stream()}, std::move(payload));
  if (!protocol::is_final(type)) return;
  // The handler may be the caller.
  loop_.defer([handler = std::move(found->second.handler)] {});
  streams_.erase(found);
}

void Server::release(const Outlet& outlet, std::size_t payload) {
  auto found = streams_.find(outlet.stream());
  if (outlet.connection() != connection_ || found == streams_.end()) return;
  if (auto grant = found->second.window.release(payload); grant != 0) {
    channel_.send({.type = FrameType::credit, .stream = outlet.stream()}, protocol::encode_credit(grant));
  }
}

void Server::on_frame(protocol::Frame frame) {
  if (frame.header.stream == 0) {
    on_connection_frame(frame);
  } else if (frame.header.type == FrameType::request) {
    on_request(frame);
  } else {
    on_stream_frame(std::move(frame));
  }
}

void Server::on_connection_frame(protocol::Frame& frame) {
  switch (frame.header.type) {
    case FrameType::ping:
      channel_.send({.type = FrameType::pong}, std::move(frame.payload));
      break;
    case FrameType::hello: {
      auto hello = protocol::decode<protocol::Hello>(frame.payload);
      on_reset();
      if (!hello || hello->version != protocol::k_version) {
        channel_.drop({protocol::Violation::handshake, "another version of the protocol"});
      } else {
        say_hello();
      }
      break;
    }
    case FrameType::goodbye:
      on_reset();
      break;
    default:
      break;
  }
}

void Server::on_request(protocol::Frame& frame) {
  auto stream = frame.header.stream;
  if (streams_.contains(stream)) {
    channel_.drop({protocol::Violation::bad_stream, "a request on a stream that is open"});
    return;
  }
  auto request = protocol::decode_request(frame.payload);
  if (!request) {
    channel_.drop(request.error());
    return;
  }
  streams_[stream];
  Outlet outlet(*this, stream, connection_);
  if (streams_.size() > k_max_streams) {
    outlet.fail(refuse(ErrorCode::limit_exceeded, "too many operations at one time").error());
    return;
  }
  dispatch(*request, outlet);
}

void Server::on_stream_frame(protocol::Frame frame) {
  auto found = streams_.find(frame.header.stream);
  // The final frame of a stream crosses with what the host still sends on it.
  if (found == streams_.end() || !found->second.handler) return;
  auto handler = found->second.handler;
  if (frame.header.type == FrameType::credit) {
    auto bytes = protocol::decode_credit(frame.payload);
    auto granted = bytes ? handler->on_credit(*bytes) : std::unexpected(bytes.error());
    if (!granted) channel_.drop(granted.error());
    return;
  }
  if (protocol::costs_credit(frame.header.type)) {
    if (auto taken = found->second.window.receive(frame.payload.size()); !taken) {
      channel_.drop(taken.error());
      return;
    }
  }
  handler->on_frame(std::move(frame));
}

void Server::dispatch(const protocol::Request& request, Outlet outlet) {
  if (const auto* identity = std::get_if<protocol::IdentityRequest>(&request)) {
    begin_identity(*identity, outlet);
    return;
  }
  if (!has_identity_) {
    outlet.fail(refuse(ErrorCode::invalid_state, "the machine has no identity yet").error());
    return;
  }
  if (begin_background(request, outlet)) return;
  if (const auto* exec = std::get_if<protocol::ExecRequest>(&request)) {
    begin_exec(*exec, outlet);
  } else if (const auto* clock = std::get_if<protocol::ClockRequest>(&request)) {
    auto set = platform_.set_clock(clock->wall_clock_ns);
    set ? outlet.reply(protocol::Done{}) : outlet.fail(set.error());
  } else if (std::holds_alternative<protocol::StatusRequest>(request)) {
    outlet.reply(status());
  } else if (const auto* sync = std::get_if<protocol::SyncRequest>(&request)) {
    begin_job(outlet, [freeze = platform_.may_freeze() ? sync->freeze : protocol::Freeze::no](JobStream&) {
      return encoded(sync_root(freeze));
    });
  } else if (const auto* renew = std::get_if<protocol::RenewRequest>(&request)) {
    begin_renew(*renew, outlet);
  } else if (const auto* grow = std::get_if<protocol::GrowRequest>(&request)) {
    begin_job(outlet, [device = root_device_, size = grow->root_size](JobStream&) {
      auto root = grow_root(device, size);
      if (!root) return Outcome<std::string>(std::unexpected(root.error()));
      return Outcome<std::string>(protocol::encode(protocol::GrowReply{.root_bytes = root->bytes}));
    });
  } else if (const auto* shutdown = std::get_if<protocol::ShutdownRequest>(&request)) {
    begin_shutdown(*shutdown, outlet);
  } else {
    begin_job(outlet, files_.job(request));
  }
}

void Server::begin_identity(const protocol::IdentityRequest& request, Outlet outlet) {
  if (has_identity_) {
    outlet.fail(refuse(ErrorCode::invalid_state, "the machine has its identity already").error());
    return;
  }
  finish_identity(outlet.stream(), request, platform_.become(request, outlet.stream()));
}

void Server::finish_identity(std::uint32_t stream, const protocol::IdentityRequest& request,
                             Outcome<protocol::IdentityReply> outcome) {
  streams_[stream];
  Outlet outlet(*this, stream, connection_);
  if (!outcome) {
    outlet.fail(outcome.error());
    return;
  }
  has_identity_ = true;
  generation_ = request.generation;
  root_device_ = request.root_device;
  defaults_ = {.env = request.env, .working_dir = outcome->working_dir, .user = request.user};
  files_.set_defaults({.working_dir = outcome->working_dir, .user = request.user});
  outlet.reply(*outcome);
}

void Server::begin_exec(const protocol::ExecRequest& request, Outlet outlet) {
  auto known = background_.find_key(CommandKind::foreground, request);
  if (!known) {
    outlet.fail(known.error());
    return;
  }
  if (*known) {
    view_background(BackgroundCommands::repeat(*known, outlet), outlet);
    return;
  }
  if (stopping_) {
    outlet.fail(refuse(ErrorCode::invalid_state, "the machine is shutting down").error());
    return;
  }
  auto plan = plan_command(request, defaults_);
  auto record = plan ? record_of(request) : std::unexpected(plan.error());
  if (!record) {
    outlet.fail(record.error());
    return;
  }
  auto stream = std::make_shared<CommandStream>(loop_, outlet, cgroups_.take(), *record);
  streams_[outlet.stream()].handler = stream;
  bool runs = run(stream->command(), request, std::move(*plan));
  if (*record && runs) (*record)->set_command(stream->command());
  if (*record && !runs && (*record)->failure()) background_.forget(**record);
}

bool Server::run(const std::shared_ptr<Command>& command, const protocol::ExecRequest& request,
                 SpawnPlan plan) {
  bool runs = command->start(request, std::move(plan));
  if (runs) {
    commands_.push_back(command);
  } else if (auto group = command->release_cgroup()) {
    cgroups_.give_back(std::move(*group));
  }
  return runs;
}

void Server::begin_job(Outlet outlet, JobHub::Job job, JobHub::Urgency urgency) {
  auto handler = jobs_.run(outlet, std::move(job), urgency);
  if (!handler) {
    outlet.fail(refuse(ErrorCode::limit_exceeded, "too many file operations at one time").error());
    return;
  }
  streams_[outlet.stream()].handler = std::move(handler);
}

void Server::begin_renew(const protocol::RenewRequest& request, Outlet outlet) {
  if (auto renewed = platform_.renew(request); !renewed) {
    outlet.fail(renewed.error());
    return;
  }
  generation_ = request.generation;
  outlet.reply(protocol::RenewReply{.generation = generation_});
}

void Server::begin_shutdown(const protocol::ShutdownRequest& request, Outlet outlet) {
  stopping_ = true;
  if (cgroups_.folder().empty()) {
    for (auto& command : commands_) command->kill_all();
  }
  auto freeze = platform_.may_freeze() ? protocol::Freeze::yes : protocol::Freeze::no;
  StopSignals signals;
  for (const auto& command : commands_) {
    if (auto number = command->stop_signal()) signals[command->cgroup_folder()] = number;
  }
  // Nothing that clients have open may cost the machine its flush.
  begin_job(
      outlet,
      [folder = cgroups_.folder(), signals = std::move(signals),
       grace = std::chrono::milliseconds(request.grace_ms),
       freeze](JobStream&) { return encoded(shut_down(folder, signals, grace, freeze)); },
      JobHub::Urgency::must_run);
}

protocol::StatusReply Server::status() {
  std::uint64_t open = 0;
  for (const auto& [id, stream] : streams_) {
    open += dynamic_cast<const CommandStream*>(stream.handler.get()) != nullptr ? 1 : 0;
  }
  auto memory = memory_of_kernel();
  return {.commands = open,
          .processes = cgroups_.processes().value_or(commands_.size()),
          .uptime_ms = monotonic_milliseconds(),
          .memory_total = memory.total,
          .memory_available = memory.available};
}

void Server::reap() {
  int wait_status = 0;
  for (pid_t pid = 0; (pid = ::waitpid(-1, &wait_status, WNOHANG)) > 0;) {
    auto found = std::ranges::find_if(commands_, [&](const auto& command) { return command->runs_as(pid); });
    if (found != commands_.end()) (*found)->on_exit(wait_status);
  }
  if (!sweep_pending_) {
    sweep_pending_ = true;
    loop_.defer([this] { sweep(); });  // behind the replies
  }
}

void Server::sweep() {
  sweep_pending_ = false;
  std::erase_if(commands_, [this](const auto& command) {
    if (!command->gone()) return false;
    if (auto group = command->release_cgroup()) cgroups_.give_back(std::move(*group));
    return true;
  });
}

}  // namespace holt::guest
