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

}  // namespace

CommandInfo command_info(CommandStatus status) {
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

std::vector<CommandInfo> command_infos(CommandsReply reply) {
  if (reply.commands.size() > k_max_commands)
    throw Error(ErrorCode::guest_protocol, "The guest program told of more commands than there can be");
  std::vector<CommandInfo> infos;
  for (auto& status : reply.commands) infos.push_back(command_info(std::move(status)));
  return infos;
}

StartCommandRequest start_request(const Command& command, const ExecOptions& options) {
  if (options.stdin_mode == holt::StdinMode::pipe)
    throw InvalidArgument("A background command has no input pipe; give its input as data");
  if (options.input.size() > k_input_limit) {
    throw Error(ErrorCode::too_large,
                fmt::format("The input of a background command has more than {} bytes", k_input_limit),
                {.hint = "Write it to a file of the machine first."});
  }
  return {.command = exec_request(command, options, 0),
          .input = options.input,
          .log_limit = options.output_limit};
}

SignalCommandRequest signal_request(const std::string& id, int signal_number) {
  if (signal_number < 1 || signal_number > k_last_signal)
    throw InvalidArgument(fmt::format("{} is no signal", signal_number));
  return {.id = id, .signal = static_cast<std::uint32_t>(signal_number)};
}

CommandInfo start_in_background(const MachineFolder& folder, const Command& command,
                                const ExecOptions& options) {
  return command_info(call<CommandStatus>(folder, start_request(command, options), Effect::possible,
                                          {.deadline = options.deadline, .cancel = options.cancel}));
}

std::vector<CommandInfo> background_commands(const MachineFolder& folder, const CallOptions& options) {
  return command_infos(call<CommandsReply>(folder, CommandsRequest{}, Effect::none, options));
}

ExecStream attach_to(const MachineFolder& folder, const std::string& id, const AttachOptions& options,
                     Sending sending) {
  AttachCommandRequest request{
      .id = id, .stdout_offset = options.out_offset, .stderr_offset = options.err_offset};
  auto deadline = options.deadline.value_or(Deadline::never());
  Wait wait{.deadline = deadline.earlier(Deadline::after(k_deadline)), .cancel = options.cancel};
  auto connection = StreamConnection::open(folder, request, Effect::none, wait, sending);
  if (sending == Sending::queues) connection->set_alarm(deadline);
  return stream_of(std::move(connection), {.deadline = deadline, .cancel = options.cancel});
}

CommandInfo wait_for(const MachineFolder& folder, const std::string& id, const CallOptions& options) {
  return command_info(
      call<CommandStatus>(folder, WaitCommandRequest{.id = id}, Effect::none, options, Patience::endless));
}

void send_signal(const MachineFolder& folder, const std::string& id, int signal_number,
                 const CallOptions& options) {
  call<Done>(folder, signal_request(id, signal_number), Effect::possible, options);
}

CommandInfo kill_in_background(const MachineFolder& folder, const std::string& id,
                               const CallOptions& options) {
  return command_info(call<CommandStatus>(folder, KillCommandRequest{.id = id}, Effect::possible, options));
}

}  // namespace holt::machine
