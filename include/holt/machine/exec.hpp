// Commands in a machine: what to run, and the stream of a running one.
//
//   auto stream = machine.exec_stream({"make", "-j2"}, {.working_dir = "/src"});
//   while (auto event = stream.next())
//     if (event->kind == holt::ExecEvent::Kind::out) std::cout << event->data;
#pragma once

#include "holt/machine/types.hpp"

#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace holt {

/// Where a command's standard input comes from.
enum class StdinMode {
  data,  ///< ExecOptions::input, then end of file
  pipe,  ///< ExecStream::write_stdin, until close_stdin
};

struct ExecOptions {
  std::map<std::string, std::string> env = {};  ///< over the machine's
  std::string working_dir = {};                 ///< empty: the machine's
  std::string user = {};   ///< name of the image's /etc/passwd or uid[:gid]; empty: the machine's
  std::string input = {};  ///< at most 64 MiB
  StdinMode stdin_mode = StdinMode::data;
  std::optional<Duration> timeout =
      std::nullopt;  ///< on the guest's clock, from the command's start; above zero
  std::size_t output_limit = std::size_t{8} << 20;  ///< bytes kept of each output by exec(); 0: none
  std::string idempotency_key = {};  ///< a repeat with the same key does not start a second command
  std::optional<Deadline> deadline =
      std::nullopt;  ///< on the host; unset: timeout + 5 s, none without timeout
  std::optional<CancellationToken> cancel = std::nullopt;
};

/// One event of a stream, in order of arrival.
struct ExecEvent {
  enum class Kind { out, err, exit };
  Kind kind = Kind::out;
  std::string data = {};   ///< bytes of out or err, at most 256 KiB
  ExecResult result = {};  ///< of exit, without output
};

/// A running command. The command ends (with everything it started) when the stream is killed or goes.
/// Movable. next() belongs to one thread; kill(), write_stdin(), close_stdin() and fd() may be called from
/// others meanwhile.
class ExecStream {
 public:
  ExecStream(ExecStream&&) noexcept;
  ExecStream& operator=(ExecStream&&) noexcept;
  ~ExecStream();

  /// The next event; waits for it. The exit event is the last. Nothing after it, and nothing once killed.
  /// Throws Error: OUTCOME_UNKNOWN (cause GUEST_LOST) when machine or channel ended before the command did,
  /// TIMEOUT at the deadline (the stream stays usable), CANCELLED (the command is killed), NOT_FOUND and
  /// other refusals to start.
  std::optional<ExecEvent> next(const CallOptions& options = {});

  /// Hands bytes to the command's standard input; waits while the command does not take them.
  /// Quiet when the command has ended or closed its input. Throws as next().
  void write_stdin(std::string_view bytes, const CallOptions& options = {});
  /// End of file for the command. Idempotent.
  void close_stdin();
  /// Sends a signal to the command's processes (signal(7) numbers). Quiet when it has ended.
  void signal(int signal_number);
  /// Kills the command with everything it started, and ends a next() that waits. Idempotent.
  void kill();
  /// Polls readable when next() may have something; changes never.
  int fd() const;

  /// As next(), without waiting: try again when fd() polls readable. The deadline of the command's options is
  /// kept: fd() polls readable then, too.
  Tried<ExecEvent> try_next();
  /// As write_stdin(), of as many bytes as are taken now; says how many. 0: try again when input_fd() polls
  /// readable.
  std::size_t try_write_stdin(std::string_view bytes);
  /// Polls readable when try_write_stdin() may take something.
  int input_fd() const;
  /// In a forked child: closes the descriptors and leaves the command to the parent. The object is of no
  /// other use.
  void abandon() noexcept;

  class Impl;
  explicit ExecStream(std::unique_ptr<Impl> impl);

 private:
  std::unique_ptr<Impl> impl_;
};

}  // namespace holt
