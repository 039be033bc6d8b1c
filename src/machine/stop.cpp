// Stopping machines and removing them.
#include "holt/base/error.hpp"
#include "holt/base/log.hpp"
#include "machine/ending.hpp"
#include "machine/event_log.hpp"
#include "machine/lifecycle.hpp"
#include "machine/suspension.hpp"

#include <algorithm>
#include <chrono>
#include <thread>

#include <fmt/format.h>

namespace holt::machine {
namespace {

using namespace std::chrono_literals;

// Behind the monitor's own 15 s for the flush that follows the grace.
constexpr auto k_stop_margin = 20s;

bool is_of_disk(const Error& e) {
  return e.code() == ErrorCode::storage_full || e.code() == ErrorCode::storage_error;
}

/// A stop that cost what the guest had not written out says so. `answer`: what the asked life said instead of
/// its end. Called with the folder's lock.
void throw_if_unflushed(const MachineFolder& folder, const Error& answer) {
  // The status may not say it, where the disk is full.
  if (is_of_disk(answer)) throw Error(answer);
  auto status = folder.read_status();
  // Its monitor was killed while it stopped.
  if (status.state == MachineState::stopping) throw Error(answer);
  if (status.state != MachineState::stopped || !status.failure) return;
  throw Error(status.failure->code, status.failure->message, {.subject = name_of(folder)});
}

/// Called with the folder's lock: the machine is then as after a power cut.
void give_up_memory(const MachineFolder& folder) {
  end_suspension(folder);
  auto status = folder.read_status();
  status.state = MachineState::stopped;
  folder.write_status(status);
  delete_suspended_files(folder);
  EventLog(folder.event_log()).append({.kind = "stopped", .message = "Its suspended memory was given up"});
}

}  // namespace

void stop_machine(const MachineFolder& folder, const StopOptions& options, const HostConfig& host) {
  auto deadline =
      options.call.deadline.value_or(Deadline::after(options.grace + k_stop_margin + k_remove_deadline));
  auto grace_ms = static_cast<std::uint32_t>(std::clamp<std::int64_t>(
      std::chrono::ceil<std::chrono::milliseconds>(options.grace).count(), 0, 600'000));
  auto force_at = Deadline::never();
  std::optional<ProcessIdentity> life;  // whose end this waits for: another may begin right behind it
  std::optional<Error> answer;          // what it said instead of its end
  for (;;) {
    // Looked at before the lock: one that cannot be had behind the end is another's.
    bool gone = !life || !is_alive(*life);
    if (auto lock = try_lock(folder)) {
      if (!end_vmm(folder, deadline)) throw_unkillable(folder);
      if (folder.is_suspended()) {
        if (options.grace <= Duration::zero()) return give_up_memory(folder);
        // What it has not written to its disk is in its memory only.
        lock.reset();
        start_machine(folder, {.call = {.deadline = deadline, .cancel = options.call.cancel}}, host);
        continue;
      }
      if (answer) throw_if_unflushed(folder, *answer);
      return;
    }
    if (gone) {
      if (answer) throw Error(*answer);
      life = living_monitor(folder);
      force_at = Deadline::after(options.grace + k_stop_margin);
    }
    bool asked = false;
    bool flushed = options.grace <= Duration::zero();  // or nobody asks for it
    try {
      Wait wait{.deadline = force_at.earlier(deadline), .cancel = options.call.cancel};
      auto stop =
          StreamConnection::open(folder, protocol::ShutdownRequest{.grace_ms = grace_ms}, Effect::none, wait);
      asked = true;
      life = living_monitor(folder);
      force_at = Deadline::after(options.grace + k_stop_margin);
      wait.deadline = force_at.earlier(deadline);
      stop->reply(wait);
      flushed = true;
      return await_death(folder, life, wait);
    } catch (const Error& e) {
      // Starting or stopping already, gone while it was asked, or ended without its flush: look again.
      if (e.code() == ErrorCode::not_found || e.code() == ErrorCode::cancelled) throw;
      // A monitor of another version cannot be asked to flush.
      if (e.code() == ErrorCode::not_supported && !flushed) throw;
      // Only one that does not answer in all of its time is killed: a caller's earlier deadline does not cost
      // it its flush.
      bool silent = e.code() == ErrorCode::timeout && force_at.passed() && !deadline.passed();
      if (life && (silent || e.code() == ErrorCode::not_supported)) {
        end_life(folder, *life);
        if (flushed) return;
        throw Error(ErrorCode::storage_error,
                    fmt::format("{} did not answer and was killed before it had written out its disk",
                                name_of(folder)),
                    {.subject = name_of(folder)});
      }
      bool ends_badly = is_of_disk(e) || e.code() == ErrorCode::guest_lost;
      if (asked && ends_badly && !(answer && is_of_disk(*answer))) answer = e;
    }
    check_wait(folder, deadline, options.call.cancel, "stop");
    std::this_thread::sleep_for(k_poll_step);
  }
}

void remove_machine(const MachineFolders& folders, const MachineFolder& folder,
                    const RemoveOptions& options) {
  auto deadline = options.call.deadline.value_or(Deadline::after(k_remove_deadline));
  auto lock = try_lock(folder);
  if (!lock && options.mode == RemoveMode::stopped_only) {
    throw Error(ErrorCode::conflict, fmt::format("The machine {} is running", name_of(folder)),
                {.subject = name_of(folder), .hint = "Stop it first, or remove it with force."});
  }
  if (lock && !end_vmm(folder, deadline)) {
    throw Error(ErrorCode::timeout,
                fmt::format("The VMM of {} cannot be ended; its disk is kept", name_of(folder)),
                {.subject = name_of(folder), .retryable = true});
  }
  if (!lock) {
    EventLog(folder.event_log())
        .append({.kind = std::string(k_removing_event), .message = "It is removed while it runs"});
    lock = end_by_force(folder, deadline);
  }
  folders.erase(folder);
}

void sweep_machines(const MachineFolders& folders) {
  folders.sweep();
  for (const auto& name : folders.names()) {
    auto folder = folders.of(name);
    try {
      if (folder.read_record().config.lifetime != Lifetime::ephemeral) continue;
      auto lock = try_lock(folder);
      if (lock && end_vmm(folder, Deadline::after(1s))) folders.erase(folder);
    } catch (const Error& e) {
      // Damaged or gone: listing names the first, the second needs nothing.
      logger("machine")->debug("{}", e.what());
    }
  }
}

}  // namespace holt::machine
