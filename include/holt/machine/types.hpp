// Small values of the machine SDK: states, resources, results, file facts. Depends on base/ only.
#pragma once

#include "holt/base/cancellation.hpp"
#include "holt/base/deadline.hpp"
#include "holt/base/error.hpp"
#include "holt/base/time.hpp"

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace holt {

/// Where a machine is in its life (docs/reference.md, "Machine states").
enum class MachineState {
  created,    ///< never started
  starting,   ///< booting; no command accepted yet
  running,    ///< accepts commands
  paused,     ///< vCPUs frozen, memory in place
  suspended,  ///< memory in a file, no process
  stopping,   ///< flushing its disk
  stopped,    ///< no process, disk kept
  failed,     ///< start failed, crashed or broke the protocol; MachineInfo::reason says which
};
std::string_view to_string(MachineState state);
std::optional<MachineState> machine_state_from(std::string_view word);

/// What runs the vCPUs. Only `kvm` is an isolation boundary: QEMU's security policy gives no promise under
/// TCG.
enum class Accelerator { kvm, tcg };
std::string_view to_string(Accelerator accelerator);
/// "hardware" or "none".
std::string_view isolation_of(Accelerator accelerator);

/// How the present life of a machine began.
enum class BootKind {
  restore,  ///< from the template
  cold,     ///< by its kernel
  resume,   ///< from its own suspended memory
};
std::string_view to_string(BootKind kind);

/// Size of a machine.
struct Resources {
  unsigned cpus = 2;          ///< 1 to 32
  unsigned memory_mb = 1024;  ///< MiB, 128 to 1,048,576
  unsigned disk_gb = 20;      ///< GiB, 1 to 4,096
};

/// What may leave a machine. `none` means that no packet can.
enum class NetworkMode { none, open, allow_list };
std::string_view to_string(NetworkMode mode);
struct NetworkConfig {
  NetworkMode mode = NetworkMode::none;
  std::vector<std::string> hosts = {};
  std::vector<std::string> cidrs = {};
  std::vector<unsigned> ports = {};
};

/// Why a machine failed.
struct MachineFailure {
  ErrorCode code = ErrorCode::internal;
  std::string message = {};
  WallTime at{};
  std::optional<int> signal = std::nullopt;  ///< the signal that ended the VMM, if one did
};

/// Everything known of a machine without asking its guest (spec: docs/reference.md, "Machine object").
struct MachineInfo {
  std::string name = {};
  MachineState state = MachineState::created;
  std::optional<MachineFailure> reason = std::nullopt;  ///< of failed, of paused, of stopped unflushed
  std::string image_reference = {};
  std::string image_digest = {};
  WallTime created_at{};
  std::optional<WallTime> started_at = std::nullopt;
  std::optional<int> pid = std::nullopt;  ///< of the VMM, while there is one
  std::optional<Accelerator> accelerator = std::nullopt;
  std::optional<BootKind> boot_kind = std::nullopt;
  std::optional<Duration> boot_time = std::nullopt;  ///< start of the VMM to identity acknowledged
  Resources resources = {};
  NetworkConfig network = {};
  std::vector<std::string> env_names = {};  ///< never the values
  std::string working_dir = {};
  std::string user = {};
  std::map<std::string, std::string> labels = {};
  bool persistent = true;
  std::optional<Duration> idle_stop = std::nullopt;
  std::optional<Duration> idle_suspend = std::nullopt;
  std::optional<Resources> next_resources = std::nullopt;  ///< from the next start on, where they differ
  std::uint64_t suspended_bytes = 0;                       ///< blocks of the memory of a suspended one
  std::uint64_t disk_bytes = 0;                            ///< blocks of the overlay on the host
  std::uint64_t memory_bytes = 0;                          ///< resident memory of the VMM
  /// Parts of the jail around QEMU (holt/machine/jail.hpp) and their states, of the present or last life.
  std::map<std::string, std::string> jail = {};
  bool responsive = true;  ///< false: its monitor did not answer in time
};

/// What a persistent machine does when the program that started it ends, however it ends.
enum class OwnerEnd {
  keep,    ///< runs on
  stop,    ///< is flushed and stopped
  remove,  ///< is removed with its disk; where it has been stopped or suspended before, it stays
};

/// Something that happened to a machine, as its event log keeps it.
struct MachineEvent {
  WallTime at{};
  std::string kind = {};     ///< a word: "started", "stopped", "failed", ... (docs/reference.md, "Events")
  std::string message = {};  ///< one sentence
  std::optional<ErrorCode> code = std::nullopt;  ///< of what went wrong
};

/// What a machine uses. Bytes and times count from the start of its VMM: at a start and at a resume.
struct MachineStats {
  WallTime at{};
  Duration cpu_time{};             ///< of the VMM on the host's processors
  std::uint64_t host_memory = 0;   ///< resident memory of the VMM
  std::uint64_t memory_limit = 0;  ///< that the guest's kernel has
  std::uint64_t memory_used = 0;   ///< of it, what programs could not get
  std::uint64_t disk_read = 0;
  std::uint64_t disk_written = 0;
  std::uint64_t processes = 0;  ///< of commands and what they left behind
  Duration uptime{};            ///< of the guest
  bool guest_answered = false;  ///< false: the guest's own figures are 0
};

/// What wait() waits for.
enum class WaitFor {
  ready,  ///< it accepts commands
  ended,  ///< it has no process: created, stopped, suspended, failed or removed
};

/// What every call that waits takes.
struct CallOptions {
  std::optional<Deadline> deadline = std::nullopt;  ///< unset: the call's own default, which it documents
  std::optional<CancellationToken> cancel = std::nullopt;
};

/// The answer of a call that does not wait: nothing yet, a value, or (where there can be one) the end.
template <class T>
struct Tried {
  bool pending = false;                   ///< nothing yet: try again when the descriptor polls readable
  std::optional<T> value = std::nullopt;  ///< nothing when not pending: the end

  static Tried not_yet() { return {.pending = true}; }
  static Tried end() { return {}; }
};

/// New sizes of a machine; what is unset stays.
struct ResizeOptions {
  std::optional<unsigned> cpus = std::nullopt;
  std::optional<unsigned> memory_mb = std::nullopt;
  std::optional<unsigned> disk_gb = std::nullopt;  ///< only larger
  CallOptions call = {};                           ///< default deadline: 30 s
};

/// Changes of what is only written down; what is unset stays.
struct UpdateOptions {
  std::map<std::string, std::optional<std::string>> labels = {};  ///< nothing: the label goes
  std::optional<std::optional<Duration>> idle_stop = std::nullopt;
  std::optional<std::optional<Duration>> idle_suspend = std::nullopt;
  /// Environment variables of commands, from the next start on; nothing: the variable goes.
  std::map<std::string, std::optional<std::string>> env = {};
};

/// How a command ended, and what it wrote where that was collected.
struct ExecResult {
  std::optional<int> exit_code = std::nullopt;  ///< 0-255, set when it exited
  std::optional<int> signal = std::nullopt;     ///< set when a signal ended it
  bool timed_out = false;                       ///< the option `timeout` ended it
  bool oom = false;                             ///< the guest's kernel ended it for want of memory
  std::string out = {};
  std::string err = {};
  bool out_truncated = false;
  bool err_truncated = false;
  Duration duration{};  ///< on the guest's clock

  bool success() const { return exit_code == 0; }
  /// What a shell would show: the exit code, 124 when timed out, 128 + signal.
  int shell_code() const {
    if (timed_out) return 124;
    return exit_code ? *exit_code : 128 + signal.value_or(0);
  }
};

enum class FileType { regular, directory, symlink, fifo, socket, block_device, char_device, unknown };
std::string_view to_string(FileType type);

/// Facts of a guest file.
struct FileStat {
  FileType type = FileType::unknown;
  std::uint64_t size = 0;
  std::uint32_t mode = 0;  ///< permission bits, 07777
  std::uint32_t uid = 0;
  std::uint32_t gid = 0;
  std::int64_t mtime_ns = 0;  ///< nanoseconds since 1970 on the guest's clock
  std::uint64_t links = 0;
  std::uint64_t allocated = 0;  ///< bytes on the disk
  std::string target = {};      ///< of a symbolic link, where it itself was looked at
};

/// One name of a folder. `name` has neither '/' nor NUL and is never "." or "..".
struct DirEntry {
  std::string name = {};
  FileType type = FileType::unknown;                 ///< of the name itself
  FileType target = FileType::unknown;               ///< with links followed; a dangling link stays symlink
  std::optional<std::uint64_t> size = std::nullopt;  ///< of the target, where that is a regular file
  std::uint32_t mode = 0;                            ///< of the target
  std::int64_t mtime_ns = 0;
};

}  // namespace holt
