// The stream of a command: its frames become input, signals and output. The command ends with it.
#pragma once

#include "guest/background.hpp"
#include "guest/command.hpp"
#include "guest/stream.hpp"
#include "holt/protocol/flow.hpp"

#include <memory>

namespace holt::guest {

/// The far end of a stream. The handler and the command's sink share it.
struct CommandOutlet {
  Outlet outlet;
  protocol::SendCredit credit = {};
};

class CommandStream : public StreamHandler {
 public:
  /// `record`: of a command that may be asked for again; null for others.
  CommandStream(Loop& loop, Outlet outlet, std::optional<Cgroup> cgroup,
                std::shared_ptr<BackgroundCommand> record);

  /// For start(), and for those who keep the command when the stream is over.
  const std::shared_ptr<Command>& command() const { return command_; }

  void on_frame(protocol::Frame frame) override;
  std::expected<void, protocol::ProtocolError> on_credit(std::uint32_t bytes) override;
  void on_disconnect() override;

 private:
  std::shared_ptr<BackgroundCommand> record_;
  std::shared_ptr<CommandOutlet> end_;
  std::shared_ptr<Command> command_;
};

/// The signal in a signal frame, the size in a resize frame; nothing in a frame that is not well formed.
std::optional<int> signal_of(const protocol::Frame& frame);
std::optional<protocol::TerminalSize> size_of(const protocol::Frame& frame);

}  // namespace holt::guest
