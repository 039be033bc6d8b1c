// A microVM with a disk of its own: create it, run commands in it, move files, stop it, start it again.
//
//   auto machine = holt::Machine::create({.name = "dev"});
//   auto result  = machine.exec({"python3", "-c", "print(2**10)"});
//   machine.write_file("/tmp/note", "hello");
//   machine.stop();
//
// All calls block; each has a deadline of its own and takes another, and a CancellationToken. In coroutines
// run them with holt::blocking(). Each call talks to the machine's monitor over a connection of its own, so a
// Machine may be used by any number of threads at once. Depends on base/ and image/ only (no Asio, no JSON).
#pragma once

#include "holt/machine/config.hpp"
#include "holt/machine/exec.hpp"
#include "holt/machine/files.hpp"
#include "holt/machine/host_config.hpp"
#include "holt/machine/types.hpp"
#include "holt/machine/walk.hpp"

#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace holt {

/// What a start is doing: called on the calling thread.
struct StartProgress {
  enum class Step { fetching_image, probing_accelerator, building_template, waiting_for_template, booting };
  Step step = Step::booting;
  std::string text = {};  ///< for people, no line end
};

struct StartOptions {
  std::function<void(const StartProgress&)> on_progress = {};
  /// Of the life that this start begins; of no effect on a machine that runs already. With `stop` the Machine
  /// objects that share the start own it, and so does their process: when the last of them goes or the
  /// process ends, by whatever death, the machine is flushed and stopped. Of no effect on an ephemeral
  /// machine.
  OwnerEnd owner_end = OwnerEnd::keep;
  CallOptions call = {};  ///< default deadline: 30 s for the boot, after at most 20 s of waiting for its turn
                          ///< on a busy host; building a template comes on top, 90 s, and a pull
                          ///< takes what it takes
};

struct StopOptions {
  Duration grace = std::chrono::seconds(10);  ///< for the guest to flush; then the VMM is ended without it
  /// Default deadline: grace + 30 s. One that passes before the machine has ended is TIMEOUT, and the machine
  /// goes on stopping.
  CallOptions call = {};
};

enum class RemoveMode {
  stopped_only,  ///< CONFLICT when it runs
  force,         ///< kills it first
};
struct RemoveOptions {
  RemoveMode mode = RemoveMode::stopped_only;
  CallOptions call = {};  ///< default deadline: 10 s
};

enum class RemoveKind { file_or_empty_dir, tree };

/// A handle on one machine. Copies are the same machine. Thread-safe.
///
/// Errors that every call of a running machine can throw: INVALID_STATE (not running; retryable), NOT_FOUND
/// (removed), GUEST_LOST (machine or channel ended, nothing was done), OUTCOME_UNKNOWN (it ended after the
/// request was sent), GUEST_PROTOCOL (the guest broke the protocol; the machine is failed), TIMEOUT,
/// CANCELLED.
class Machine {
 public:
  /// Defines and boots, its image pulled or imported first where that is asked for (obtain_image). On failure
  /// no machine is left. Throws Error: INVALID_CONFIG, CONFLICT (name taken), NOT_FOUND (image) and as
  /// obtain_image(), KVM_UNAVAILABLE, HYPERVISOR_UNAVAILABLE, RUNTIME_NOT_INSTALLED, STORAGE_FULL,
  /// TIMEOUT, CANCELLED.
  static Machine create(const MachineConfig& config, const StartOptions& options, const HostConfig& host);
  static Machine create(const MachineConfig& config, const StartOptions& options = {});

  /// Makes the folder and the disk, boots nothing. Persistent machines only. Errors as create().
  static Machine define(const MachineConfig& config, const HostConfig& host);
  static Machine define(const MachineConfig& config);

  /// The machine of a name, started when it was not running. Throws NOT_FOUND, and as start().
  static Machine connect(const std::string& name, const StartOptions& options, const HostConfig& host);
  static Machine connect(const std::string& name, const StartOptions& options = {});

  /// The machine of a name as it is. Throws NOT_FOUND.
  static Machine open(const std::string& name, const HostConfig& host);
  static Machine open(const std::string& name);

  /// All machines, by name; probed in parallel, 250 ms each. Damaged folders appear as failed with the
  /// reason.
  static std::vector<MachineInfo> list_all(const HostConfig& host);
  static std::vector<MachineInfo> list_all();

  const std::string& name() const;
  /// Throws NOT_FOUND when it has been removed.
  MachineState state() const;
  MachineInfo info() const;
  /// The machine object of the command line and HTTP, as JSON text.
  std::string info_json() const;
  /// The machine's console log on the host; guest bytes, at most 10 MiB.
  std::filesystem::path console_log() const;

  /// Boots it, or resumes it when it is suspended or paused; quiet when it runs. Two callers at once: one
  /// boots, both get the result. A suspended machine that cannot be resumed stays suspended.
  void start(const StartOptions& options = {});
  /// Flushes the guest's file systems and ends it; quiet when it does not run. Nothing that was written is
  /// lost unless the guest did not answer in the grace time. Calls under way end with GUEST_LOST, "stopped".
  /// Throws Error STORAGE_ERROR or STORAGE_FULL when it has ended without its flush.
  void stop(const StopOptions& options = {});
  /// Removes machine and disk after the VMM's death is confirmed. Throws NOT_FOUND when there is none,
  /// TIMEOUT (and keeps the folder) when the VMM cannot be ended.
  void remove(const RemoveOptions& options = {});
  /// Freezes the vCPUs; memory stays where it is, commands stand still. Requests meanwhile are refused with
  /// INVALID_STATE, calls under way wait. Quiet when it is paused. Throws INVALID_STATE when it does not run.
  void pause(const CallOptions& options = {});
  /// Writes memory and devices to files and ends the VMM: processes, open files and what they have in memory
  /// are there again after start() or resume(). Client calls under way end as at a stop; commands go on after
  /// the resume, with their output dropped (start_command() keeps it). Quiet when it is suspended. Throws
  /// INVALID_STATE when it does not run, NOT_SUPPORTED for an ephemeral machine, STORAGE_FULL (and it runs
  /// on). Default deadline: 30 s and 1 s for each 100 MiB of memory.
  void suspend(const CallOptions& options = {});
  /// Lets a paused machine go on or brings a suspended one back; quiet when it runs. Throws INVALID_STATE for
  /// one that is neither, and as start().
  void resume(const StartOptions& options = {});

  /// Changes its size. The disk grows at once where it runs, else with the next start; vCPUs and memory
  /// change with the next start. Returns the sizes that count from then on. Throws INVALID_CONFIG (ranges),
  /// NOT_SUPPORTED (a smaller disk), INVALID_STATE (suspended).
  Resources resize(const ResizeOptions& options);
  /// Changes labels, and from the next start on idle times and environment; a resume goes on with those of
  /// before. Throws INVALID_CONFIG, also for the environment of an ephemeral machine, which has no next
  /// start.
  void update(const UpdateOptions& changes);
  /// What happened to it, oldest first; at least the last 500 events, also of earlier lives.
  std::vector<MachineEvent> events() const;
  /// The file behind events(), one JSON object a line: for whoever wants to watch it.
  std::filesystem::path event_log() const;
  /// Throws INVALID_STATE when it does not run. Default deadline 5 s.
  MachineStats stats(const CallOptions& options = {}) const;
  /// Waits until it is so; default deadline: none. Returns how it is then. Throws NOT_FOUND when it is
  /// removed meanwhile and `ready` was waited for, INVALID_STATE when it failed instead, TIMEOUT, CANCELLED.
  MachineInfo wait(WaitFor what, const CallOptions& options = {}) const;

  /// Runs a command, collects what it writes. A command that fails is a result, not an error; 127 is "not
  /// found", 126 "not executable". A working folder that is missing is Error NOT_FOUND.
  ExecResult exec(const std::vector<std::string>& argv, const ExecOptions& options = {}) const;
  /// The same for a script of /bin/sh.
  ExecResult exec_shell(const std::string& script, const ExecOptions& options = {}) const;
  /// Starts a command and gives its stream; waits for the connection only.
  ExecStream exec_stream(const std::vector<std::string>& argv, const ExecOptions& options = {}) const;
  ExecStream exec_shell_stream(const std::string& script, const ExecOptions& options = {}) const;

  /// Starts a command that goes on without a caller and survives it; what it writes is kept in a log of
  /// bounded size in the guest. ExecOptions as for exec(), with input of at most 2 MiB and no pipe; a repeat
  /// with the same idempotency_key gives the command of the first. What cannot be found or executed is a
  /// command that has ended with 127 or 126. Throws Error: NOT_FOUND, INVALID_CONFIG and other refusals to
  /// start, LIMIT_EXCEEDED (256 that run), OUTCOME_UNKNOWN. Default deadline 10 s.
  CommandInfo start_command(const std::vector<std::string>& argv, const ExecOptions& options = {}) const;
  CommandInfo start_shell_command(const std::string& script, const ExecOptions& options = {}) const;
  /// Those of this life of the machine, oldest first: all that run and the youngest that have ended, 256
  /// together. Default deadline 10 s.
  std::vector<CommandInfo> commands(const CallOptions& options = {}) const;
  /// What it has written, from the first byte or an offset on, then what it goes on to write, then its exit.
  /// The exit's truncated flags say that the log had lost something of that. The command goes on when the
  /// stream is killed or goes. Input reaches nobody. Errors of the next(): NOT_FOUND for an unknown command,
  /// also one of an earlier life of the machine; GUEST_LOST when the machine ends.
  ExecStream attach_command(const std::string& id, const AttachOptions& options = {}) const;
  /// Waits until it has ended. No default deadline.
  CommandInfo wait_command(const std::string& id, const CallOptions& options = {}) const;
  /// To its processes, as ExecStream::signal(). Quiet when it has ended. Default deadline 10 s.
  void signal_command(const std::string& id, int signal_number, const CallOptions& options = {}) const;
  /// Kills it with everything it started and returns when it has ended. Quiet when it had. Default deadline
  /// 10 s.
  CommandInfo kill_command(const std::string& id, const CallOptions& options = {}) const;

  /// The bytes of a regular file. Throws NOT_FOUND, IS_DIRECTORY, NOT_REGULAR, PERMISSION_DENIED, TOO_LARGE.
  std::string read_file(const std::string& path, const ReadOptions& options = {}) const;
  FileReader open_read(const std::string& path, const ReadOptions& options = {}) const;
  /// Replaces a file whole (temporary file and rename in the guest), through symbolic links.
  void write_file(const std::string& path, std::string_view bytes,
                  const FileWriteOptions& options = {}) const;
  FileWriter open_write(const std::string& path, const FileWriteOptions& options = {}) const;

  FileStat stat(const std::string& path, const CallOptions& options = {}) const;   ///< follows links
  FileStat lstat(const std::string& path, const CallOptions& options = {}) const;  ///< of a link itself
  bool exists(const std::string& path, const CallOptions& options = {}) const;     ///< follows links
  std::string realpath(const std::string& path, const CallOptions& options = {}) const;
  /// Names of a folder in byte order. At most 1,000,000 entries
  /// (LIMIT_EXCEEDED).
  std::vector<DirEntry> list(const std::string& path, const CallOptions& options = {}) const;
  /// The entries of a folder and of all below it, as a stream. Throws NOT_FOUND, NOT_A_DIRECTORY.
  TreeWalk walk(const std::string& path, const WalkOptions& options = {}) const;
  /// Changes mode, owner and time of modification. Throws NOT_FOUND, PERMISSION_DENIED, NOT_SUPPORTED (the
  /// mode of a link), INVALID_CONFIG (an owner that is neither name nor number).
  void set_attributes(const std::string& path, const FileAttributes& attributes,
                      const AttributeOptions& options = {}) const;
  /// Makes a folder with its parents; quiet when it is there.
  void make_dir(const std::string& path, const CallOptions& options = {}) const;
  void remove_path(const std::string& path, RemoveKind kind = RemoveKind::file_or_empty_dir,
                   const CallOptions& options = {}) const;
  void rename(const std::string& from, const std::string& to, const CallOptions& options = {}) const;

  /// Copies a file or tree of the host to the guest path `target` (which then is the file or tree).
  CopyResult copy_in(const std::filesystem::path& source, const std::string& target,
                     const CopyOptions& options = {}) const;
  /// Copies a guest file or tree to the host path `target`. The guest's names are hostile: nothing outside
  /// `target` is touched, and no link is followed.
  CopyResult copy_out(const std::string& source, const std::filesystem::path& target,
                      const CopyOptions& options = {}) const;

  /// Unpacks a tar (ustar, pax, GNU; as it is, gzip or zstd) below the guest folder `target`, which is made
  /// where it is missing. Names that lead out of it fail, others go on. Throws IMAGE_INVALID for what is no
  /// tar; of what came before the damage, some is there.
  CopyResult copy_tar_in(const TarInput& tar, const std::string& target,
                         const CopyOptions& options = {}) const;
  /// The content of a guest folder as a tar of the pax format, names relative to it ("./x"); of a file that
  /// file alone. Owners are always in it.
  CopyResult copy_tar_out(const std::string& source, const TarOutput& tar,
                          const CopyOptions& options = {}) const;

  /// Asks the guest program for a sign of life. Default deadline 5 s.
  void ping(const CallOptions& options = {}) const;

  /// In a forked child: gives up what this process would hold of a machine that ends with its owner, so that
  /// the parent alone is the owner. The object is of no other use.
  void abandon() noexcept;

 private:
  friend struct MachineAccess;
  struct Handle;
  explicit Machine(std::shared_ptr<Handle> handle);
  std::shared_ptr<Handle> handle_;
};

}  // namespace holt
