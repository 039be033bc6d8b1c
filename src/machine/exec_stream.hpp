// Commands over a StreamConnection.
#pragma once

#include "holt/machine/exec.hpp"
#include "machine/stream_connection.hpp"

#include <optional>
#include <string>
#include <vector>

namespace holt::machine {

/// argv, or a script of /bin/sh.
struct Command {
  std::vector<std::string> argv = {};
  std::optional<std::string> script = std::nullopt;
};

/// What exec() keeps of a command's events.
class ExecCollector {
 public:
  explicit ExecCollector(const ExecOptions& options)
      : limit_(options.output_limit), over_limit_(options.over_limit) {}
  /// The result, with the exit event. Throws OutputLimitError where the options want that.
  std::optional<ExecResult> take(ExecEvent event);
  /// What the guest program is told of the limit.
  static std::uint64_t guest_limit(const ExecOptions& options);

 private:
  struct Output {
    std::string text = {};
    bool more = false;
    void add(std::string_view piece, std::size_t limit);
  };
  void check_limit();

  std::size_t limit_;
  OverLimit over_limit_;
  Output out_;
  Output err_;
};

/// Checks the options and starts the command. Throws Error INVALID_CONFIG, and as StreamConnection::open.
ExecStream open_command(const MachineFolder& folder, const Command& command, const ExecOptions& options,
                        std::uint64_t output_limit, Sending sending = Sending::waits);
/// Runs it to its end and collects.
ExecResult run_command(const MachineFolder& folder, const Command& command, const ExecOptions& options);

/// The request of a command. Throws Error INVALID_CONFIG.
protocol::ExecRequest exec_request(const Command& command, const ExecOptions& options,
                                   std::uint64_t output_limit);
/// What the guest tells of a command's end, without output. Throws Error GUEST_PROTOCOL for an impossible
/// one.
ExecResult exec_result(const protocol::ExecReply& reply);
/// The stream of a command that is there already.
ExecStream stream_of(std::unique_ptr<StreamConnection> connection, const ExecOptions& options);

}  // namespace holt::machine
