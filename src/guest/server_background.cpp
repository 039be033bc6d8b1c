// The server's requests about background commands.
#include "guest/server.hpp"

#include <utility>

namespace holt::guest {
namespace {

/// Kept of the output of a command with a key that has no limit of its own.
constexpr std::uint64_t k_stream_log = std::uint64_t{8} << 20;

}  // namespace

bool Server::begin_background(const protocol::Request& request, Outlet outlet) {
  auto with = [&](const std::string& id, auto action) {
    auto command = background_.find(id);
    command ? action(*command) : outlet.fail(command.error());
    return true;
  };
  if (const auto* start = std::get_if<protocol::StartCommandRequest>(&request)) {
    start_background(*start, outlet);
    return true;
  }
  if (std::holds_alternative<protocol::CommandsRequest>(request)) {
    outlet.reply(background_.list());
    return true;
  }
  if (const auto* attach = std::get_if<protocol::AttachCommandRequest>(&request)) {
    return with(attach->id, [&](auto& command) {
      view_background(BackgroundCommands::attach(command, *attach, outlet), outlet);
    });
  }
  if (const auto* wait = std::get_if<protocol::WaitCommandRequest>(&request)) {
    return with(wait->id, [&](auto& command) {
      view_background(BackgroundCommands::wait_for_end(command, outlet), outlet);
    });
  }
  if (const auto* signal = std::get_if<protocol::SignalCommandRequest>(&request)) {
    return with(signal->id, [&](auto& command) { signal_background(*command, *signal, outlet); });
  }
  if (const auto* kill = std::get_if<protocol::KillCommandRequest>(&request)) {
    return with(kill->id, [&](auto& command) {
      if (auto running = command->command()) running->kill_all();
      view_background(BackgroundCommands::wait_for_end(command, outlet), outlet);
    });
  }
  return false;
}

Outcome<std::shared_ptr<BackgroundCommand>> Server::record_of(const protocol::ExecRequest& request) {
  if (request.key.empty()) return nullptr;
  auto limit = request.output_limit == 0 ? k_stream_log : request.output_limit;
  return background_.add(CommandKind::foreground, {.command = request, .log_limit = limit});
}

void Server::start_background(const protocol::StartCommandRequest& request, Outlet outlet) {
  auto known = background_.find_key(CommandKind::background, request.command);
  if (!known) {
    outlet.fail(known.error());
    return;
  }
  if (*known) {
    outlet.reply((*known)->status());
    return;
  }
  if (stopping_) {
    outlet.fail(refuse(ErrorCode::invalid_state, "the machine is shutting down").error());
    return;
  }
  auto exec = request.command;
  exec.output_limit = 0;
  exec.stdin_mode = request.input.empty() ? protocol::StdinMode::none : protocol::StdinMode::stream;
  auto plan = plan_command(exec, defaults_);
  auto added = plan ? background_.add(CommandKind::background, request) : std::unexpected(plan.error());
  if (!added) {
    outlet.fail(added.error());
    return;
  }
  auto& background = **added;
  auto command = std::make_shared<Command>(loop_, BackgroundCommands::sink_of(*added), cgroups_.take());
  if (run(command, exec, std::move(*plan))) {
    background.set_command(command);
    command->feed(request.input);
    command->end_of_input();
  }
  if (const auto& failure = background.failure()) {
    outlet.fail(*failure);
    background_.forget(background);
    return;
  }
  outlet.reply(background.status());
}

void Server::signal_background(const BackgroundCommand& command,
                               const protocol::SignalCommandRequest& request, Outlet outlet) {
  constexpr std::uint32_t k_last_signal = 64;
  if (request.signal < 1 || request.signal > k_last_signal) {
    outlet.fail(refuse(ErrorCode::invalid_config, "no such signal").error());
    return;
  }
  if (auto running = command.command()) running->signal(static_cast<int>(request.signal));
  outlet.reply(protocol::Done{});
}

void Server::view_background(const std::shared_ptr<CommandViewer>& viewer, Outlet outlet) {
  streams_[outlet.stream()].handler = viewer;
  viewer->on_change();
}

}  // namespace holt::guest
