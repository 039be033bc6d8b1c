// Commands in a machine: what to run, and the stream of a running one.
//
//   auto stream = machine.exec_stream({"make", "-j2"}, {.working_dir = "/src"});
//   while (auto event = stream.next())
//     if (event->kind == holt::ExecEvent::Kind::out) std::cout << event->data;
#pragma once

#include "holt/machine/types.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace holt {

/// Where a command's standard input comes from.
enum class StdinMode {
  data,  ///< ExecOptions::input, then end of file
  pipe,  ///< ExecStream::write_stdin, until close_stdin
};

/// What exec() does with output above the limit.
enum class OverLimit {
  cut,   ///< the command goes on, the rest is dropped and the result says so
  fail,  ///< the command is killed and OutputLimitError thrown
};

/// A command wrote more than ExecOptions::output_limit. Code LIMIT_EXCEEDED.
class OutputLimitError : public Error {
 public:
  OutputLimitError(std::size_t limit, std::string out, std::string err);
  std::size_t limit() const { return limit_; }
  /// What was written first, at most 64 KiB each.
  const std::string& out_preview() const { return out_; }
  const std::string& err_preview() const { return err_; }

 private:
  std::size_t limit_;
  std::string out_;
  std::string err_;
};

/// Size of a terminal in characters. 0 by 0 is a terminal whose size is not known.
struct TerminalSize {
  unsigned rows = 24;
  unsigned columns = 80;
};

/// What a command may use at most. An unset one is the machine's own.
struct ResourceLimits {
  /// Processor time of each process. It gets SIGXCPU then, and SIGKILL a second later.
  std::optional<std::uint64_t> cpu_seconds = std::nullopt;
  std::optional<std::uint64_t> file_size = std::nullopt;   ///< bytes of a file that it writes (SIGXFSZ)
  std::optional<std::uint64_t> open_files = std::nullopt;  ///< descriptors of each process
  std::optional<std::uint64_t> processes = std::nullopt;   ///< and threads, of the whole tree
  std::optional<std::uint64_t> memory =
      std::nullopt;  ///< bytes of the whole tree; more ends it, marked `oom`
  std::optional<std::uint64_t> core_size = std::nullopt;  ///< bytes of a core dump
};

struct ExecOptions {
  std::map<std::string, std::string> env = {};  ///< over the machine's
  std::string working_dir = {};                 ///< empty: the machine's
  /// Name of the image's /etc/passwd or uid, with ":group" or ":gid" where wanted; empty: the machine's.
  std::string user = {};
  std::string input = {};  ///< at most 64 MiB
  StdinMode stdin_mode = StdinMode::data;
  std::optional<Duration> timeout =
      std::nullopt;  ///< on the guest's clock, from the command's start; above zero
  /// Bytes kept of each output: by exec() its beginning, in the log of a background command its end. 0: none.
  std::size_t output_limit = std::size_t{8} << 20;
  OverLimit over_limit = OverLimit::cut;
  /// A terminal as all three streams; what the command writes then arrives as Kind::out alone. TERM is
  /// xterm-256color where `env` says nothing else. The end of the input is typed as Ctrl-D.
  std::optional<TerminalSize> terminal = std::nullopt;
  ResourceLimits limits = {};
  /// What the command's processes are asked to end with when the machine stops; 1 to 64, 0: SIGTERM.
  int stop_signal = 0;
  /// A repeat of the same call with the same key starts no second command: it gets the output (of a stream
  /// the last 8 MiB of each) and the end of the first, whether that still runs or has ended. Such a command
  /// outlives the loss of its caller, once it has its input, though neither kill() nor a deadline: give it a
  /// timeout. CONFLICT with another command, or when the result is no longer kept.
  std::string idempotency_key = {};
  std::optional<Deadline> deadline =
      std::nullopt;  ///< on the host; unset: timeout + 5 s, else none once it runs (30 s till then)
  std::optional<CancellationToken> cancel = std::nullopt;
};

/// One event of a stream, in order of arrival.
struct ExecEvent {
  enum class Kind { out, err, exit };
  Kind kind = Kind::out;
  std::string data = {};   ///< bytes of out or err, at most 256 KiB
  ExecResult result = {};  ///< of exit, without output
};

/// A command that goes on without a caller: it ends by itself, when it is killed, or with this life of its
/// machine.
struct CommandInfo {
  std::string id = {};   ///< opaque; never given again, in no life of the machine
  std::int64_t pid = 0;  ///< inside the machine
  std::vector<std::string> argv =
      {};  ///< cut with "..." when long; guest bytes, to be shown with printable()
  bool terminal = false;
  bool running = false;
  std::optional<ExecResult> result = std::nullopt;  ///< once it has ended, without output
  WallTime started_at{};                            ///< on the guest's clock
  std::uint64_t out_bytes = 0;                      ///< written so far, also what the log has lost
  std::uint64_t err_bytes = 0;
  bool log_truncated = false;  ///< the log has lost its beginning
};

/// From where to read a background command's log.
struct AttachOptions {
  std::uint64_t out_offset = 0;  ///< bytes of each output to pass over
  std::uint64_t err_offset = 0;
  std::optional<Deadline> deadline = std::nullopt;  ///< of the whole stream; unset: none
  std::optional<CancellationToken> cancel = std::nullopt;
};

/// A running command. The command ends (with everything it started) when the stream is killed or goes; one of
/// the background goes on.
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
  /// Gives the command's terminal a new size; its foreground processes get SIGWINCH. Quiet without one.
  void resize(TerminalSize size);
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
