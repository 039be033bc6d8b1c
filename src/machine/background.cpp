#include "machine/background.hpp"

#include "machine/guest_link.hpp"

#include <chrono>
#include <limits>

#include <fmt/format.h>

namespace holt::machine {

using namespace protocol;

namespace {

using namespace std::chrono_literals;

constexpr auto k_deadline = 10s;
constexpr std::size_t k_input_limit = std::size_t{2} << 20;
constexpr int k_last_signal = 64;

enum class Patience { ten_seconds, endless };

template <class Reply>
Reply call(const MachineFolder& folder, const Request& request, Effect effect, const CallOptions& options,
           Patience patience = Patience::ten_seconds) {
  auto fallback = patience == Patience::endless ? Deadline::never() : Deadline::after(k_deadline);
  Wait wait{.deadline = options.deadline.value_or(fallback), .cancel = options.cancel};
  auto reply = decode<Reply>(StreamConnection::open(folder, request, effect, wait)->reply(wait));
  if (!reply) throw guest_protocol_error(reply.error());
  return std::move(*reply);
}

CommandInfo info_of(CommandStatus status) {
  CommandInfo info{.id = std::move(status.id),
                   .pid = status.pid,
                   .argv = std::move(status.argv),
                   .terminal = status.terminal,
                   .running = !status.result,
                   .started_at = WallTime(std::chrono::microseconds(status.started_at_ns / 1000)),
                   .out_bytes = status.stdout_bytes,
                   .err_bytes = status.stderr_bytes,
                   .log_truncated = status.log_truncated};
  if (status.result) info.result = exec_result(*status.result);
  return info;
}

}  // namespace

CommandInfo start_in_background(const MachineFolder& folder, const Command& command,
                                const ExecOptions& options) {
  if (options.stdin_mode == holt::StdinMode::pipe)
    throw InvalidArgument("A background command has no input pipe; give its input as data");
  if (options.input.size() > k_input_limit) {
    throw Error(ErrorCode::too_large,
                fmt::format("The input of a background command has more than {} bytes", k_input_limit),
                {.hint = "Write it to a file of the machine first."});
  }
  StartCommandRequest request{.command = exec_request(command, options, 0),
                              .input = options.input,
                              .log_limit = options.output_limit};
  return info_of(call<CommandStatus>(folder, request, Effect::possible,
                                     {.deadline = options.deadline, .cancel = options.cancel}));
}

std::vector<CommandInfo> background_commands(const MachineFolder& folder, const CallOptions& options) {
  auto reply = call<CommandsReply>(folder, CommandsRequest{}, Effect::none, options);
  if (reply.commands.size() > k_max_commands)
    throw Error(ErrorCode::guest_protocol, "The guest program told of more commands than there can be");
  std::vector<CommandInfo> infos;
  for (auto& status : reply.commands) infos.push_back(info_of(std::move(status)));
  return infos;
}

ExecStream attach_to(const MachineFolder& folder, const std::string& id, const AttachOptions& options) {
  AttachCommandRequest request{
      .id = id, .stdout_offset = options.out_offset, .stderr_offset = options.err_offset};
  auto deadline = options.deadline.value_or(Deadline::never());
  Wait wait{.deadline = deadline.earlier(Deadline::after(k_deadline)), .cancel = options.cancel};
  return stream_of(StreamConnection::open(folder, request, Effect::none, wait),
                   {.deadline = deadline, .cancel = options.cancel});
}

CommandInfo wait_for(const MachineFolder& folder, const std::string& id, const CallOptions& options) {
  return info_of(
      call<CommandStatus>(folder, WaitCommandRequest{.id = id}, Effect::none, options, Patience::endless));
}

void send_signal(const MachineFolder& folder, const std::string& id, int signal_number,
                 const CallOptions& options) {
  if (signal_number < 1 || signal_number > k_last_signal)
    throw InvalidArgument(fmt::format("{} is no signal", signal_number));
  SignalCommandRequest request{.id = id, .signal = static_cast<std::uint32_t>(signal_number)};
  call<Done>(folder, request, Effect::possible, options);
}

CommandInfo kill_in_background(const MachineFolder& folder, const std::string& id,
                               const CallOptions& options) {
  return info_of(call<CommandStatus>(folder, KillCommandRequest{.id = id}, Effect::possible, options));
}

}  // namespace holt::machine
