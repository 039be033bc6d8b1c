#include "machine/ending.hpp"

#include "holt/base/error.hpp"
#include "holt/base/log.hpp"
#include "machine/event_log.hpp"
#include "machine/host_facts.hpp"

#include <sys/stat.h>
#include <thread>

#include <fmt/format.h>

namespace holt::machine {
namespace {

[[noreturn]] void throw_missing(const MachineFolder& folder) {
  throw Error(ErrorCode::not_found, fmt::format("There is no machine {}", name_of(folder)),
              {.subject = name_of(folder), .hint = "See holt ls -a for those there are."});
}

/// The lock file that was opened may be of a folder that has been removed and made again since.
bool is_lock_of(const FileLock& lock, const MachineFolder& folder) {
  struct stat held{};
  struct stat there{};
  return ::fstat(lock.fd(), &held) == 0 && ::stat(folder.lock_file().c_str(), &there) == 0 &&
         held.st_ino == there.st_ino && held.st_dev == there.st_dev;
}

/// Called with the folder's lock, whose holder passes for a monitor, so that the machine does not pass for
/// running.
void mark_ending(const MachineFolder& folder) {
  auto status = folder.read_status();
  if (status.state != MachineState::running && status.state != MachineState::paused) return;
  status.state = MachineState::stopping;
  try {
    folder.write_status(status);
  } catch (const Error& e) {
    // A full disk must not keep a machine from its end.
    logger("machine")->debug("{}", e.what());
  }
}

}  // namespace

std::string name_of(const MachineFolder& folder) {
  return folder.path().filename().string();
}

std::optional<FileLock> try_lock(const MachineFolder& folder) {
  if (!folder.exists()) throw_missing(folder);
  try {
    auto lock = FileLock::try_acquire(folder.lock_file());
    if (lock && !is_lock_of(*lock, folder)) return std::nullopt;
    return lock;
  } catch (const Error& e) {
    if (e.code() == ErrorCode::not_found) throw_missing(folder);
    throw;
  }
}

void check_wait(const MachineFolder& folder, Deadline deadline,
                const std::optional<CancellationToken>& cancel, const char* what) {
  if (cancel) cancel->throw_if_cancelled();
  if (deadline.passed()) {
    throw Error(ErrorCode::timeout, fmt::format("{} did not {} in time", name_of(folder), what),
                {.subject = name_of(folder), .retryable = true});
  }
}

void throw_unkillable(const MachineFolder& folder) {
  throw Error(ErrorCode::timeout, fmt::format("The processes of {} cannot be ended", name_of(folder)),
              {.subject = name_of(folder), .hint = "Its disk is kept. Try again later.", .retryable = true});
}

std::optional<ProcessIdentity> living_monitor(const MachineFolder& folder) {
  auto status = folder.read_status();
  bool lives = status.monitor && status.host_boot_id == host_boot_id() && is_alive(*status.monitor);
  return lives ? status.monitor : std::nullopt;
}

void await_death(const MachineFolder& folder, const std::optional<ProcessIdentity>& monitor,
                 const Wait& wait) {
  while (monitor && is_alive(*monitor)) {
    check_wait(folder, wait.deadline, wait.cancel, "end");
    std::this_thread::sleep_for(k_poll_step);
  }
}

void end_life(const MachineFolder& folder, const ProcessIdentity& monitor) {
  auto deadline = Deadline::after(k_remove_deadline);
  auto status = folder.read_status();
  bool is_its = status.monitor == monitor;
  EventLog(folder.event_log())
      .append({.kind = std::string(k_killed_event), .message = "It did not answer a stop and is killed"});
  bool ended = kill_and_wait(monitor, deadline);
  if (is_its && status.vmm) ended = kill_and_wait(*status.vmm, deadline) && ended;
  if (!ended) throw_unkillable(folder);
}

bool end_vmm(const MachineFolder& folder, Deadline deadline) {
  auto status = folder.read_status();
  if (!status.vmm || status.host_boot_id != host_boot_id()) return true;
  return kill_and_wait(*status.vmm, deadline);
}

FileLock end_by_force(const MachineFolder& folder, Deadline deadline) {
  for (;;) {
    if (auto lock = try_lock(folder)) {
      mark_ending(folder);
      if (end_vmm(folder, deadline)) return std::move(*lock);
    } else {
      // The monitor may not have written yet who it is: look again until the lock is free.
      auto status = folder.read_status();
      if (status.monitor && status.host_boot_id == host_boot_id()) kill_and_wait(*status.monitor, deadline);
      std::this_thread::sleep_for(k_poll_step);
    }
    if (deadline.passed()) throw_unkillable(folder);
  }
}

}  // namespace holt::machine
