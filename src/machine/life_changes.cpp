#include "holt/base/error.hpp"
#include "holt/base/json.hpp"
#include "machine/ending.hpp"
#include "machine/event_log.hpp"
#include "machine/info.hpp"
#include "machine/lifecycle.hpp"
#include "machine/stream_connection.hpp"

#include <chrono>
#include <thread>

#include <fmt/format.h>

namespace holt::machine {
namespace {

using namespace std::chrono_literals;

constexpr auto k_change_deadline = 30s;
constexpr auto k_figures_deadline = 5s;
constexpr auto k_look_step = 10ms;
// As the monitor reckons, and half a minute for its way there.
constexpr unsigned k_mib_per_second = 100;

[[noreturn]] void throw_state(const MachineFolder& folder, MachineState state, const char* hint) {
  throw Error(ErrorCode::invalid_state,
              fmt::format("The machine {} is {}", name_of(folder), to_string(state)),
              {.subject = name_of(folder), .hint = hint});
}

bool is_moving(MachineState state) {
  return state == MachineState::starting || state == MachineState::stopping;
}

/// Brings a machine into a state by asking its monitor, and waits out what is under way there. Returns the
/// monitor that has done it, which may have ended.
std::optional<ProcessIdentity> reach(const MachineFolder& folder, protocol::LifeChange change,
                                     MachineState wanted, Deadline deadline,
                                     const std::optional<CancellationToken>& cancel) {
  for (;;) {
    auto state = machine_state(folder);
    auto status = folder.read_status();
    if (state == wanted) return status.state == wanted ? status.monitor : std::nullopt;
    bool ready = state == MachineState::running || state == MachineState::paused;
    if (!ready && !is_moving(state)) throw_state(folder, state, "Start it first.");
    // Once: who changes it behind that means it.
    if (ready && change_life(folder, change, deadline, cancel)) return status.monitor;
    check_wait(folder, deadline, cancel, "get there");
    std::this_thread::sleep_for(k_look_step);
  }
}

/// Reads, changes and replaces the record; one caller at a time. The monitor of a running machine keeps what
/// it has read at its start.
template <class Change>
MachineRecord change_record(const MachineFolder& folder, Change change) {
  folder.read_record();  // throws NOT_FOUND before a lock file is made
  auto lock = FileLock::acquire(folder.path() / "record.lock", Deadline::after(5s));
  auto record = folder.read_record();
  change(record);
  check_machine_config(record.config);
  write_file_atomically(folder.record_file(), encode_record(record));
  return record;
}

using TextChanges = std::map<std::string, std::optional<std::string>>;

void apply(const TextChanges& changes, std::map<std::string, std::string>& texts) {
  for (const auto& [key, value] : changes) {
    if (value) {
      texts[key] = *value;
    } else {
      texts.erase(key);
    }
  }
}

/// Called with the lock of the record.
void change_env(const MachineFolder& folder, const TextChanges& changes, MachineRecord& record) {
  if (record.config.lifetime == Lifetime::ephemeral) {
    throw Error(ErrorCode::invalid_config,
                fmt::format("{} ends with its owner: it has no next start to change", name_of(folder)),
                {.subject = name_of(folder), .hint = "Give the environment to each command."});
  }
  auto env = folder.read_env();
  apply(changes, env);
  check_machine_config({.env = env});
  folder.write_env(env);
  record.config.env.clear();
  for (const auto& [name, value] : env) record.config.env[name] = "";
}

/// How the machine is, where it is so. Throws INVALID_STATE when it never will be ready.
std::optional<MachineInfo> info_once(const MachineFolder& folder, WaitFor what) {
  auto state = machine_state(folder);
  bool alive = is_moving(state) || state == MachineState::running || state == MachineState::paused;
  if (what == WaitFor::ended ? !alive : state == MachineState::running) return machine_info(folder);
  if (what == WaitFor::ended || state != MachineState::failed) return std::nullopt;
  auto info = machine_info(folder);
  throw Error(ErrorCode::invalid_state, fmt::format("The machine {} failed", name_of(folder)),
              {.subject = name_of(folder),
               .causes = info.reason ? std::vector{info.reason->message} : std::vector<std::string>{}});
}

}  // namespace

bool change_life(const MachineFolder& folder, protocol::LifeChange change, Deadline deadline,
                 const std::optional<CancellationToken>& cancel) {
  Wait wait{.deadline = deadline, .cancel = cancel};
  try {
    StreamConnection::open(folder, protocol::LifeRequest{.change = change}, Effect::none, wait)->reply(wait);
    return true;
  } catch (const Error& e) {
    if (e.code() != ErrorCode::invalid_state && e.code() != ErrorCode::guest_lost) throw;
    // One that stands still for another reason says so instead of being asked again.
    if (e.code() == ErrorCode::invalid_state && machine_state(folder) == MachineState::paused) throw;
    return false;
  }
}

void pause_machine(const MachineFolder& folder, const CallOptions& options) {
  auto deadline = options.deadline.value_or(Deadline::after(k_change_deadline));
  reach(folder, protocol::LifeChange::pause, MachineState::paused, deadline, options.cancel);
}

void suspend_machine(const MachineFolder& folder, const CallOptions& options) {
  auto memory = std::chrono::seconds(folder.read_record().config.resources.memory_mb / k_mib_per_second);
  auto deadline = options.deadline.value_or(Deadline::after(2 * k_change_deadline + memory));
  auto monitor =
      reach(folder, protocol::LifeChange::suspend, MachineState::suspended, deadline, options.cancel);
  // It lets go of the folder right behind its last word, and another start may take that at once.
  await_death(folder, monitor, {.deadline = deadline, .cancel = options.cancel});
}

Fd resume_machine(const MachineFolder& folder, const StartOptions& options, const HostConfig& host) {
  auto state = machine_state(folder);
  bool resumable = state == MachineState::running || state == MachineState::paused ||
                   state == MachineState::suspended || is_moving(state);
  if (!resumable) throw_state(folder, state, "Start it.");
  return start_machine(folder, options, host);
}

Resources resize_machine(const MachineFolder& folder, const ResizeOptions& options) {
  auto deadline = options.call.deadline.value_or(Deadline::after(k_change_deadline));
  auto state = machine_state(folder);
  if (state == MachineState::suspended) throw_state(folder, state, "Resume it first.");
  std::uint64_t disk_before = 0;
  // The larger disk is written down first: a start makes every disk as large as its record says, and would
  // cut one that is larger.
  auto record = change_record(folder, [&](MachineRecord& changed) {
    auto& sizes = changed.config.resources;
    disk_before = changed.disk_bytes;
    if (options.cpus) sizes.cpus = *options.cpus;
    if (options.memory_mb) sizes.memory_mb = *options.memory_mb;
    if (!options.disk_gb) return;
    if (*options.disk_gb < sizes.disk_gb) {
      throw Error(
          ErrorCode::not_supported,
          fmt::format("The disk of {} has {} GiB and cannot become smaller", name_of(folder), sizes.disk_gb),
          {.subject = name_of(folder), .hint = "Make a new machine and copy the files."});
    }
    sizes.disk_gb = *options.disk_gb;
    changed.disk_bytes = std::max(changed.disk_bytes, std::uint64_t{sizes.disk_gb} << 30);
  });
  const auto& sizes = record.config.resources;
  EventLog(folder.event_log())
      .append({.kind = "resized",
               .message = fmt::format("{} vCPUs, {} MiB, {} GiB from the next start on", sizes.cpus,
                                      sizes.memory_mb, sizes.disk_gb)});
  if (record.disk_bytes == disk_before || state != MachineState::running) return sizes;
  try {
    Wait wait{.deadline = deadline, .cancel = options.call.cancel};
    protocol::ResizeDiskRequest request{.disk_bytes = record.disk_bytes};
    StreamConnection::open(folder, request, Effect::none, wait)->reply(wait);
  } catch (const Error& e) {
    // Stopped meanwhile: then the next start does it.
    if (e.code() != ErrorCode::invalid_state && e.code() != ErrorCode::guest_lost) throw;
  }
  return sizes;
}

void update_machine(const MachineFolder& folder, const UpdateOptions& changes) {
  change_record(folder, [&](MachineRecord& record) {
    apply(changes.labels, record.config.labels);
    if (!changes.env.empty()) change_env(folder, changes.env, record);
    if (changes.idle_stop) record.config.idle_stop = *changes.idle_stop;
    if (changes.idle_suspend) record.config.idle_suspend = *changes.idle_suspend;
  });
  EventLog(folder.event_log())
      .append({.kind = "updated", .message = "Its labels, idle times or environment were changed"});
}

MachineStats machine_stats(const MachineFolder& folder, const CallOptions& options) {
  Wait wait{.deadline = options.deadline.value_or(Deadline::after(k_figures_deadline)),
            .cancel = options.cancel};
  auto payload = StreamConnection::open(folder, protocol::StatsRequest{}, Effect::none, wait)->reply(wait);
  auto reply = protocol::decode<protocol::StatsReply>(payload);
  if (!reply) throw Error(ErrorCode::internal, "The monitor sent figures that cannot be read");
  auto observed = observe(folder);
  MachineStats stats{
      .at = wall_now(),
      .memory_limit = reply->memory_total,
      .memory_used = reply->memory_total - std::min(reply->memory_total, reply->memory_available),
      .disk_read = reply->disk_read,
      .disk_written = reply->disk_written,
      .processes = reply->processes,
      .uptime = std::chrono::milliseconds(reply->uptime_ms),
      .guest_answered = reply->guest_answered};
  if (observed.monitored && observed.status.vmm) {
    stats.cpu_time = processor_time(observed.status.vmm->pid);
    stats.host_memory = resident_memory(observed.status.vmm->pid);
  }
  return stats;
}

MachineInfo wait_for_machine(const MachineFolder& folder, WaitFor what, const CallOptions& options) {
  auto deadline = options.deadline.value_or(Deadline::never());
  for (;;) {
    try {
      if (auto info = info_once(folder, what)) return std::move(*info);
    } catch (const Error& e) {
      if (what == WaitFor::ready || e.code() != ErrorCode::not_found) throw;
      MachineInfo gone{.name = name_of(folder), .state = MachineState::stopped};
      return gone;
    }
    check_wait(folder, deadline, options.cancel, "get there");
    std::this_thread::sleep_for(k_look_step);
  }
}

}  // namespace holt::machine
