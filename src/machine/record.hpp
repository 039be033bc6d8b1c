// The folder of one machine, which together with a live monitor is all the truth about it.
//
// Layout of Directories::state/machines/NAME, mode 0700:
//   machine.json   what it is (MachineRecord), versioned
//   env.json       values of its environment, where it has one; apart, because everything else may be shown
//   disk.qcow2     its disk, an overlay on the image
//   status.json    how its present or last life goes (MachineStatus); written by the monitor
//   lock           held by the monitor as long as it lives, and by whoever changes the folder without one
//   monitor.sock   where the monitor listens
//   console.log    what the guest wrote to its console
//   events.jsonl   what happened to it (event_log.hpp)
//   suspended/     memory and devices of a suspended machine (suspension.hpp)
#pragma once

#include "holt/base/directories.hpp"
#include "holt/base/fd.hpp"
#include "holt/base/files.hpp"
#include "holt/base/json_fwd.hpp"
#include "holt/base/process.hpp"
#include "holt/machine/config.hpp"
#include "holt/machine/types.hpp"

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace holt::machine {

/// Content of machine.json.
struct MachineRecord {
  MachineConfig config;  ///< env: names only, values empty
  std::string machine_id = {};
  std::string image_reference = {};
  std::string image_digest = {};
  std::filesystem::path image_file = {};
  std::uint64_t disk_bytes = 0;
  std::string working_dir = {};  ///< the configuration's, else the image's
  std::string user = {};
  std::vector<std::string> image_env;  ///< "NAME=VALUE"; public: anybody with the image has it
  WallTime created_at{};
};
std::string encode_record(const MachineRecord& record);
/// Throws Error INVALID_STATE with the reason for a damaged record or one of a newer version.
MachineRecord decode_record(std::string_view text);

/// Content of status.json.
struct MachineStatus {
  MachineState state = MachineState::created;
  std::optional<MachineFailure> failure = std::nullopt;
  std::optional<ProcessIdentity> monitor = std::nullopt;
  std::optional<ProcessIdentity> vmm = std::nullopt;
  std::string host_boot_id = {};
  std::optional<WallTime> started_at = std::nullopt;
  std::optional<Accelerator> accelerator = std::nullopt;
  std::optional<BootKind> boot_kind = std::nullopt;
  std::optional<Duration> boot_time = std::nullopt;
  std::map<std::string, std::string> jail = {};  ///< part to state
  unsigned cpus = 0;                             ///< of this life; 0: unknown
  unsigned memory_mb = 0;                        ///<
};
std::string encode_status(const MachineStatus& status);
/// Anything unreadable is a machine that failed with INTERNAL.
MachineStatus decode_status(std::string_view text);

/// Paths and files of one machine's folder. A value; opens nothing by itself.
class MachineFolder {
 public:
  MachineFolder() = default;
  explicit MachineFolder(std::filesystem::path path) : path_(std::move(path)) {}

  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path record_file() const { return path_ / "machine.json"; }
  std::filesystem::path env_file() const { return path_ / "env.json"; }
  std::filesystem::path disk() const { return path_ / "disk.qcow2"; }
  std::filesystem::path status_file() const { return path_ / "status.json"; }
  std::filesystem::path lock_file() const { return path_ / "lock"; }
  std::filesystem::path console_log() const { return path_ / "console.log"; }
  std::filesystem::path event_log() const { return path_ / "events.jsonl"; }
  std::filesystem::path suspended() const { return path_ / "suspended"; }
  /// True when suspended/ holds a whole machine.
  bool is_suspended() const;

  bool exists() const;
  /// Throws as decode_record(), and NOT_FOUND.
  MachineRecord read_record() const;
  std::map<std::string, std::string> read_env() const;
  /// Replaces env.json, durably.
  void write_env(const std::map<std::string, std::string>& env) const;
  MachineStatus read_status() const;
  /// Replaces status.json without waiting for the host's disk: after a crash of the host the status is void
  /// anyway.
  void write_status(const MachineStatus& status) const;

 private:
  std::filesystem::path path_;
};

/// All machines of a state directory.
class MachineFolders {
 public:
  explicit MachineFolders(const Directories& directories) : root_(directories.state / "machines") {}
  explicit MachineFolders(std::filesystem::path root) : root_(std::move(root)) {}
  const std::filesystem::path& root() const { return root_; }

  /// The folder of a name. Checks the name: throws INVALID_CONFIG.
  MachineFolder of(const std::string& name) const;
  /// Names that have a folder, sorted.
  std::vector<std::string> names() const;

  /// A folder being made, not visible under a name yet; it goes with its object.
  struct Staged {
    TempDir folder;
    FileLock lock;
  };
  Staged stage() const;
  /// Gives a staged folder its name; its lock goes on. Throws Error CONFLICT when the name is taken.
  FileLock publish(Staged staged, const std::string& name) const;
  /// Takes a folder away at once for everybody, then deletes it. The caller holds its lock until this
  /// returns.
  void erase(const MachineFolder& folder) const;
  /// Deletes what dead processes left half-made or half-removed.
  void sweep() const;

 private:
  std::filesystem::path root_;
};

/// What the files and processes say of a machine, without asking its monitor.
struct Observed {
  MachineStatus status;
  bool monitored = false;  ///< a live process holds the lock
};
Observed observe(const MachineFolder& folder);

}  // namespace holt::machine
