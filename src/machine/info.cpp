#include "machine/info.hpp"

#include "holt/base/disk_usage.hpp"
#include "holt/base/error.hpp"
#include "holt/base/json.hpp"
#include "holt/base/log.hpp"
#include "holt/base/process.hpp"
#include "machine/stream_connection.hpp"

#include <chrono>
#include <cstring>
#include <mutex>
#include <thread>
#include <unistd.h>

#include <fmt/format.h>

namespace holt::machine {
namespace {

using namespace std::chrono_literals;

constexpr auto k_probe_deadline = 250ms;
constexpr std::size_t k_probes_at_once = 32;

bool answers(const MachineFolder& folder) {
  try {
    Wait wait{.deadline = Deadline::after(k_probe_deadline)};
    StreamConnection::open(folder, protocol::StatusRequest{}, Effect::none, wait)->reply(wait);
    return true;
  } catch (const Error&) {
    return false;
  }
}

MachineState state_of(const MachineFolder& folder, const Observed& observed) {
  auto state = observed.status.state;
  bool ended = state == MachineState::created || state == MachineState::stopped ||
               state == MachineState::failed || state == MachineState::suspended;
  if (!observed.monitored) return state;
  const auto& writer = observed.status.monitor;
  if (!ended) {
    // Its monitor was killed, and the lock is still with it, or with who did that and has not written so yet.
    bool ran = state == MachineState::running || state == MachineState::paused;
    return ran && writer && is_ending(*writer) ? MachineState::stopping : state;
  }
  // The monitor that wrote this is about to go; one that has just been started has not written anything yet.
  if (writer && is_alive(*writer)) return state;
  // Or it has gone since the lock was looked at.
  return FileLock::holder(folder.lock_file()) ? MachineState::starting : state;
}

/// Called behind a look at the folder, which a removal may have taken away meanwhile. Throws NOT_FOUND.
void check_exists(const MachineFolder& folder) {
  if (!folder.exists()) folder.read_record();  // throws in its words
}

void add_status(MachineInfo& info, const MachineFolder& folder) {
  auto observed = observe(folder);
  const auto& status = observed.status;
  info.state = state_of(folder, observed);
  if (info.state != MachineState::running) info.reason = status.failure;
  if (!observed.monitored && !std::filesystem::exists(folder.disk())) {
    info.state = MachineState::failed;
    info.reason =
        MachineFailure{.code = ErrorCode::storage_error,
                       .message = fmt::format("The disk of {} is gone; remove the machine", info.name),
                       .at = wall_now()};
  }
  info.started_at = status.started_at;
  info.accelerator = status.accelerator;
  info.boot_kind = status.boot_kind;
  info.boot_time = status.boot_time;
  info.jail = status.jail;
  bool lives = observed.monitored || info.state == MachineState::suspended;
  if (lives && status.cpus > 0 &&
      (status.cpus != info.resources.cpus || status.memory_mb != info.resources.memory_mb)) {
    info.next_resources = info.resources;
    info.resources.cpus = status.cpus;
    info.resources.memory_mb = status.memory_mb;
  }
  if (info.state == MachineState::suspended) info.suspended_bytes = disk_bytes(folder.suspended() / "memory");
  if (observed.monitored && status.vmm) {
    info.pid = status.vmm->pid;
    info.memory_bytes = resident_memory(status.vmm->pid);
  }
  if (info.state == MachineState::running) info.responsive = answers(folder);
}

Json milliseconds_or_null(const std::optional<Duration>& duration) {
  if (!duration) return nullptr;
  return std::chrono::ceil<std::chrono::milliseconds>(*duration).count();
}

}  // namespace

std::uint64_t resident_memory(pid_t pid) {
  // "SIZE RESIDENT ..." in pages, proc(5).
  auto text = read_file_if_exists(fmt::format("/proc/{}/statm", pid), 256).value_or("");
  auto at = text.find(' ');
  if (at == std::string::npos) return 0;
  return std::strtoull(text.c_str() + at + 1, nullptr, 10) *
         static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
}

Duration processor_time(pid_t pid) {
  // Fields 14 and 15 of proc(5), counted behind the name, which may hold anything.
  auto text = read_file_if_exists(fmt::format("/proc/{}/stat", pid), 4096).value_or("");
  auto at = text.rfind(')');
  if (at == std::string::npos) return {};
  constexpr int k_fields_before = 11;  // of those behind the name
  const char* rest = text.c_str() + at + 1;
  char* end = nullptr;
  for (int i = 0; i <= k_fields_before && *rest != '\0'; i++) {
    rest = std::strchr(rest + 1, ' ');
    if (rest == nullptr) return {};
  }
  auto user = std::strtoull(rest, &end, 10);
  auto system = std::strtoull(end, nullptr, 10);
  auto ticks = static_cast<double>(::sysconf(_SC_CLK_TCK));
  return std::chrono::duration_cast<Duration>(
      std::chrono::duration<double>(static_cast<double>(user + system) / ticks));
}

MachineState machine_state(const MachineFolder& folder) {
  auto state = state_of(folder, observe(folder));
  check_exists(folder);
  return state;
}

MachineInfo machine_info(const MachineFolder& folder) {
  MachineInfo info{.name = folder.path().filename().string(),
                   .image_reference = {},
                   .image_digest = {},
                   .working_dir = {},
                   .user = {}};
  try {
    auto record = folder.read_record();
    const auto& config = record.config;
    info.image_reference = record.image_reference;
    info.image_digest = record.image_digest;
    info.created_at = record.created_at;
    info.resources = config.resources;
    info.network = config.network;
    for (const auto& [name, value] : config.env) info.env_names.push_back(name);
    info.working_dir = record.working_dir;
    info.user = record.user;
    info.labels = config.labels;
    info.persistent = config.lifetime == Lifetime::persistent;
    info.idle_stop = config.idle_stop;
    info.idle_suspend = config.idle_suspend;
    info.disk_bytes = disk_bytes(folder.disk());
    add_status(info, folder);
    check_exists(folder);
  } catch (const Error& e) {
    if (e.code() == ErrorCode::not_found) throw;
    info.state = MachineState::failed;
    info.reason = MachineFailure{.code = e.code(), .message = e.what(), .at = wall_now()};
  }
  return info;
}

std::vector<MachineInfo> all_machine_infos(const MachineFolders& folders) {
  auto names = folders.names();
  std::vector<std::optional<MachineInfo>> infos(names.size());
  for (std::size_t first = 0; first < names.size(); first += k_probes_at_once) {
    std::vector<std::jthread> probes;
    for (std::size_t i = first; i < std::min(names.size(), first + k_probes_at_once); i++) {
      probes.emplace_back([&, i] {
        try {
          infos[i] = machine_info(folders.of(names[i]));
        } catch (const Error& e) {
          // Removed since the names were read.
          logger("machine")->debug("{}", e.what());
        }
      });
    }
  }
  std::vector<MachineInfo> found;
  for (auto& info : infos) {
    if (info) found.push_back(std::move(*info));
  }
  return found;
}

std::string machine_json(const MachineInfo& info) {
  Json reason;
  if (info.reason) {
    reason = {{"code", to_string(info.reason->code)},
              {"message", info.reason->message},
              {"at", rfc3339(info.reason->at)}};
    if (info.reason->signal) reason["signal"] = *info.reason->signal;
  }
  Json image;
  if (!info.image_reference.empty())
    image = {{"reference", info.image_reference}, {"digest", info.image_digest}};
  auto idle = milliseconds_or_null(info.idle_stop);
  auto idle_suspend = milliseconds_or_null(info.idle_suspend);
  Json next;
  if (info.next_resources) {
    next = {{"cpus", info.next_resources->cpus},
            {"memoryMb", info.next_resources->memory_mb},
            {"diskGb", info.next_resources->disk_gb}};
  }
  Json json{{"name", info.name},
            {"id", info.name},
            {"state", to_string(info.state)},
            {"reason", reason},
            {"image", image},
            {"createdAt", rfc3339(info.created_at)},
            {"startedAt", info.started_at ? Json(rfc3339(*info.started_at)) : Json()},
            {"pid", info.pid ? Json(*info.pid) : Json()},
            {"accelerator", info.accelerator ? Json(to_string(*info.accelerator)) : Json()},
            {"isolation", info.accelerator ? Json(isolation_of(*info.accelerator)) : Json()},
            {"resources",
             {{"cpus", info.resources.cpus},
              {"memoryMb", info.resources.memory_mb},
              {"diskGb", info.resources.disk_gb}}},
            {"nextResources", next},
            {"network",
             {{"mode", to_string(info.network.mode)},
              {"hosts", info.network.hosts},
              {"cidrs", info.network.cidrs},
              {"ports", info.network.ports}}},
            {"ports", Json::array()},
            {"mounts", Json::array()},
            {"env", info.env_names},
            {"workdir", info.working_dir.empty() ? "/" : info.working_dir},
            {"user", info.user.empty() ? "root" : info.user},
            {"labels", Json(info.labels)},
            {"persistent", info.persistent},
            {"detached", info.persistent},
            {"branchable", false},
            {"parent", nullptr},
            {"ttlSeconds", nullptr},
            {"idleTimeoutSeconds", idle.is_null() ? Json() : Json((idle.get<std::int64_t>() + 999) / 1000)},
            {"idleSuspendSeconds",
             idle_suspend.is_null() ? Json() : Json((idle_suspend.get<std::int64_t>() + 999) / 1000)},
            {"diskBytes", info.disk_bytes},
            {"memoryBytes", info.memory_bytes},
            {"suspendedBytes", info.suspended_bytes},
            {"bootKind", info.boot_kind ? Json(to_string(*info.boot_kind)) : Json()},
            {"bootMs", milliseconds_or_null(info.boot_time)},
            {"jail", Json(info.jail)},
            {"responsive", info.responsive}};
  return dump_json(json);
}

}  // namespace holt::machine
