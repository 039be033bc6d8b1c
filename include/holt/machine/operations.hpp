// Calls of a machine for event loops: each gives a descriptor to watch, none waits.
//
//   holt::Operations calls(machine);
//   auto call = calls.exec({"make", "-j2"});
//   loop.when_readable(call.fd(), [&] {
//     if (auto result = call.try_get()) loop.stop_watching(call.fd()), done(*result);
//   });
//
// What starts and ends machines and copies trees is not among them: these calls wait for processes and disks
// of the host; run them on a thread. Depends on base/ only.
#pragma once

#include "holt/machine/machine.hpp"

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace holt {

/// The result of a call that has none.
struct NoResult {};

/// A call under way. When it goes before its end it is cancelled: a command is killed with everything it
/// started, a written file not replaced. Movable; for one thread at a time.
template <class T>
class Operation {
 public:
  Operation(Operation&&) noexcept;
  Operation& operator=(Operation&&) noexcept;
  ~Operation();

  /// Polls readable when try_get() has something to do, also at the call's deadline. Changes never.
  int fd() const;
  /// The result, once; nothing while the call goes on. Throws what the waiting call of Machine throws,
  /// TIMEOUT from its deadline on, CANCELLED after cancel().
  std::optional<T> try_get();
  /// Ends the call. Idempotent.
  void cancel();
  /// In a forked child: closes the descriptors and leaves the call to the parent. The object is of no other
  /// use.
  void abandon() noexcept;

  class Impl;
  explicit Operation(std::unique_ptr<Impl> impl);

 private:
  std::unique_ptr<Impl> impl_;
};

/// The calls of one machine. Each takes the arguments of Machine's call of that name (`cancel` of the options
/// is not looked at), throws what is wrong with them or with the machine's state at once, and connects, which
/// takes microseconds. A value; thread-safe.
class Operations {
 public:
  explicit Operations(Machine machine) : machine_(std::move(machine)) {}

  Operation<ExecResult> exec(const std::vector<std::string>& argv, const ExecOptions& options = {}) const;
  Operation<ExecResult> exec_shell(const std::string& script, const ExecOptions& options = {}) const;
  /// Streams for ExecStream::try_next() and try_write_stdin().
  ExecStream exec_stream(const std::vector<std::string>& argv, const ExecOptions& options = {}) const;
  ExecStream exec_shell_stream(const std::string& script, const ExecOptions& options = {}) const;

  Operation<CommandInfo> start_command(const std::vector<std::string>& argv,
                                       const ExecOptions& options = {}) const;
  Operation<CommandInfo> start_shell_command(const std::string& script,
                                             const ExecOptions& options = {}) const;
  Operation<std::vector<CommandInfo>> commands(const CallOptions& options = {}) const;
  /// A stream for ExecStream::try_next().
  ExecStream attach_command(const std::string& id, const AttachOptions& options = {}) const;
  Operation<CommandInfo> wait_command(const std::string& id, const CallOptions& options = {}) const;
  Operation<NoResult> signal_command(const std::string& id, int signal_number,
                                     const CallOptions& options = {}) const;
  Operation<CommandInfo> kill_command(const std::string& id, const CallOptions& options = {}) const;

  Operation<std::string> read_file(const std::string& path, const ReadOptions& options = {}) const;
  /// A reader for FileReader::try_next().
  Operation<FileReader> open_read(const std::string& path, const ReadOptions& options = {}) const;
  Operation<NoResult> write_file(const std::string& path, std::string bytes,
                                 const FileWriteOptions& options = {}) const;
  /// A writer for FileWriter::try_write() and try_finish().
  FileWriter open_write(const std::string& path, const FileWriteOptions& options = {}) const;

  Operation<FileStat> stat(const std::string& path, const CallOptions& options = {}) const;
  Operation<FileStat> lstat(const std::string& path, const CallOptions& options = {}) const;
  Operation<bool> exists(const std::string& path, const CallOptions& options = {}) const;
  Operation<std::string> realpath(const std::string& path, const CallOptions& options = {}) const;
  Operation<std::vector<DirEntry>> list(const std::string& path, const CallOptions& options = {}) const;
  /// For TreeWalk::try_next().
  TreeWalk walk(const std::string& path, const WalkOptions& options = {}) const;
  Operation<NoResult> set_attributes(const std::string& path, const FileAttributes& attributes,
                                     const AttributeOptions& options = {}) const;
  Operation<NoResult> make_dir(const std::string& path, const CallOptions& options = {}) const;
  Operation<NoResult> remove_path(const std::string& path, RemoveKind kind = RemoveKind::file_or_empty_dir,
                                  const CallOptions& options = {}) const;
  Operation<NoResult> rename(const std::string& from, const std::string& to,
                             const CallOptions& options = {}) const;
  Operation<NoResult> ping(const CallOptions& options = {}) const;

 private:
  Machine machine_;
};

}  // namespace holt
