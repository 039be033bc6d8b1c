// Child processes: started with exactly the descriptors and environment given, watched by pidfd.
//
//   holt::ProcessSpec spec{.argv = {"/usr/bin/qemu-img", "check", disk}};
//   auto result = holt::run_process(spec, {.deadline = holt::Deadline::after(10s)});
//   if (result.exit_code != 0) ...
#pragma once

#include "holt/base/cancellation.hpp"
#include "holt/base/deadline.hpp"
#include "holt/base/error.hpp"
#include "holt/base/fd.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <sys/types.h>
#include <utility>
#include <vector>

namespace holt {

/// What a child does to itself between fork and exec, for callers with needs of their own.
class ChildStage {
 public:
  virtual ~ChildStage() = default;
  /// Runs in the child, when its descriptors are in place. The parent may have many threads: only
  /// async-signal-safe calls, no allocation, and no wrapper of the C library that speaks to other threads
  /// (setuid). Returns 0, or the number of what failed, with errno set.
  virtual int run() const noexcept = 0;
};

/// A ChildStage failed, or the child's namespaces could not be made; the program did not run.
class ChildStageError : public Error {
 public:
  static constexpr int k_namespaces = -1;
  ChildStageError(int step, int error_number, const std::string& message)
      : Error(error_code_of_errno(error_number), message), step_(step), error_number_(error_number) {}
  /// What run() returned, or k_namespaces.
  int step() const { return step_; }
  int error_number() const { return error_number_; }

 private:
  int step_;
  int error_number_;
};

/// What to start. The child gets no descriptor but those of `fds`, the null device where 0, 1 or 2 is not
/// among them, default signal dispositions and an empty signal mask.
struct ProcessSpec {
  std::vector<std::string> argv;  ///< argv[0] is a path, or a name looked up on this process's PATH
  std::map<std::string, std::string> env = {};  ///< the whole environment of the child
  std::string working_dir = {};                 ///< empty: this process's
  std::vector<std::pair<int, int>> fds = {};    ///< {descriptor here, descriptor in the child}
  bool new_session = false;                     ///< setsid: own session and process group
  bool die_with_parent = false;                 ///< SIGKILL when the thread that started it ends
  std::string program = {};                     ///< path to execute; empty: that of argv[0]
  unsigned long namespaces = 0;                 ///< CLONE_NEW… flags of clone(2) for the child
  const ChildStage* stage = nullptr;            ///< borrowed
};

/// How a process ended: an exit code or a signal.
struct ExitStatus {
  std::optional<int> exit_code;
  std::optional<int> signal;
  /// 0-255, or 128 + signal.
  int shell_code() const { return exit_code ? *exit_code : 128 + signal.value_or(0); }
};

/// A child of this process. Its end of life kills it (SIGKILL) and reaps it unless it was detached or has
/// been waited for. Movable.
class Process {
 public:
  /// Starts it. Throws Error: NOT_FOUND when the program or the working folder is missing, PERMISSION_DENIED
  /// when it cannot be executed; ChildStageError.
  static Process start(const ProcessSpec& spec);

  Process() = default;
  Process(Process&&) noexcept;
  Process& operator=(Process&&) noexcept;
  ~Process();

  pid_t pid() const { return pid_; }
  /// Polls readable when the process has ended.
  int pidfd() const { return pidfd_.get(); }
  /// Waits for the end and reaps; nothing at the deadline.
  std::optional<ExitStatus> wait(Deadline deadline);
  /// Sends a signal to the process, or to its group when it has a session of its own. Quiet when it has
  /// ended.
  void signal(int signal_number) const;
  /// Lets it run on without this object.
  void detach();

 private:
  pid_t pid_ = -1;
  Fd pidfd_;
  bool group_ = false;
  std::optional<ExitStatus> ended_;
};

struct RunLimits {
  Deadline deadline = Deadline::never();
  std::size_t output_limit = std::size_t{8} << 20;  ///< bytes a stream; more ends it with LIMIT_EXCEEDED
  std::string input = {};                           ///< standard input, then end of file
  std::optional<CancellationToken> cancel = std::nullopt;
};
struct ProcessResult {
  ExitStatus status;
  std::string out;
  std::string err;
};
/// Starts a program, feeds it, collects both outputs, waits for its end. Throws Error TIMEOUT, CANCELLED or
/// LIMIT_EXCEEDED, after killing it.
ProcessResult run_process(ProcessSpec spec, const RunLimits& limits);

/// A process known by pid and start time, so that a recycled pid is not taken for it.
struct ProcessIdentity {
  pid_t pid = 0;
  std::uint64_t start_ticks = 0;  ///< field 22 of /proc/PID/stat, proc(5)
  bool operator==(const ProcessIdentity&) const = default;
};
/// Identity of a live process; nothing when it is gone or a zombie.
std::optional<ProcessIdentity> identify_process(pid_t pid);
/// True while exactly that process lives; a zombie is dead.
bool is_alive(const ProcessIdentity& process);
/// True once exactly that process is dead or on its way there: sockets that it held may be closed already,
/// and locks not yet.
bool is_ending(const ProcessIdentity& process);
/// SIGKILL to exactly that process and wait for its death. False when it still lives at the deadline. Throws
/// Error when it lives and cannot be watched.
bool kill_and_wait(const ProcessIdentity& process, Deadline deadline);

}  // namespace holt
