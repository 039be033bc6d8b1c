#include "machine/jail.hpp"

#include "holt/base/error.hpp"
#include "holt/base/log.hpp"
#include "machine/host.hpp"
#include "machine/jail_stage.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <unistd.h>

#include <fmt/format.h>

namespace holt {
namespace machine {
namespace {

using namespace std::chrono_literals;

// Where distributions have programs and libraries; nothing of a user's.
constexpr auto k_system_folders = std::to_array<const char*>({"/usr", "/nix/store", "/gnu/store"});

bool is_below(const std::filesystem::path& path, const std::filesystem::path& folder) {
  auto [rest, ignored] = std::ranges::mismatch(folder, path);
  return rest == folder.end();
}

bool is_of_the_system(const std::filesystem::path& path) {
  return std::ranges::any_of(k_system_folders, [&](const char* folder) { return is_below(path, folder); });
}

/// A QEMU outside the system's folders brings its libraries and data in folders beside its own.
void add_program(JailPlan& plan, const std::filesystem::path& program) {
  if (is_of_the_system(program)) return;
  plan.files.push_back({program});
  std::error_code error;
  auto real = std::filesystem::canonical(program, error);
  if (error || is_of_the_system(real)) return;
  for (const auto* beside : {"lib", "lib64", "share/qemu"}) {
    plan.files.push_back({real.parent_path().parent_path() / beside, JailedFile::Kind::tree});
  }
}

void add_file(JailPlan& plan, const std::filesystem::path& path, JailedFile::Kind kind) {
  if (path.empty() || (kind == JailedFile::Kind::read && is_below(path, "/usr"))) return;
  plan.files.push_back({path, kind});
}

struct Obstacle {
  std::string text;
  bool none() const { return text.empty(); }
};

std::vector<Confinement> confinements() {
  std::vector<Confinement> all{Confinement::user_namespaces, Confinement::bare};
  if (landlock_version() > 0) all.insert(all.begin() + 1, Confinement::landlock);
  if (::geteuid() == 0) all.insert(all.begin(), Confinement::root_namespaces);
  return all;
}

constexpr const char* k_fix_namespaces =
    "Allow user namespaces (sysctl user.max_user_namespaces, kernel.apparmor_restrict_unprivileged_userns), "
    "or in a "
    "container, let it make namespaces.";

JailPartReport user_report(Confinement confinement, const std::string& obstacle) {
  if (confinement == Confinement::root_namespaces) {
    return {JailPart::user, JailState::on, fmt::format("uid {}", k_jail_uid)};
  }
  if (::geteuid() != 0)
    return {JailPart::user, JailState::on, fmt::format("uid {}, the caller's", ::geteuid())};
  return {JailPart::user, JailState::impossible, fmt::format("runs as root without privileges: {}", obstacle),
          "Run holt as an ordinary user."};
}

JailPartReport namespaces_report(Confinement confinement, const std::string& obstacle) {
  if (confinement == Confinement::root_namespaces || confinement == Confinement::user_namespaces) {
    return {JailPart::namespaces, JailState::on, "processes, network, IPC, mounts, host name"};
  }
  return {JailPart::namespaces, JailState::impossible, obstacle, k_fix_namespaces};
}

JailPartReport files_report(Confinement confinement, const std::string& obstacle) {
  switch (confinement) {
    case Confinement::root_namespaces:
    case Confinement::user_namespaces:
      return {JailPart::files, JailState::on, "a root file system of its own"};
    case Confinement::landlock:
      return {JailPart::files, JailState::on, "Landlock"};
    case Confinement::bare:
      break;
  }
  return {JailPart::files, JailState::impossible, fmt::format("{}; no Landlock either", obstacle),
          k_fix_namespaces};
}

JailReport report_of(Confinement confinement, const std::string& obstacle,
                     const std::optional<Cgroup>& cgroup) {
  return {user_report(confinement, obstacle),
          namespaces_report(confinement, obstacle),
          files_report(confinement, obstacle),
          {JailPart::syscalls, JailState::on, "QEMU's filter and holt's"},
          {JailPart::privileges, JailState::on, "no capabilities, no_new_privs"},
          {JailPart::limits, JailState::on,
           cgroup ? "a cgroup, resource limits" : "resource limits; no cgroup is delegated to this user"}};
}

JailReport switched_off() {
  JailReport report;
  for (auto part : {JailPart::user, JailPart::namespaces, JailPart::files, JailPart::syscalls,
                    JailPart::privileges, JailPart::limits}) {
    report.push_back({part, JailState::off, "HOLT_JAIL=off", "Unset HOLT_JAIL."});
  }
  return report;
}

void check_all_on(const JailReport& report) {
  for (const auto& part : report) {
    if (part.state == JailState::on) continue;
    throw Error(ErrorCode::not_supported,
                fmt::format("The whole jail is required, and its part {} is {}: {}", to_string(part.part),
                            to_string(part.state), part.detail),
                {.subject = "HOLT_JAIL", .hint = part.fix});
  }
}

/// Files that an earlier, stronger jail gave to its user are given back to this one.
void take_back(const JailPlan& plan) {
  for (const auto& file : plan.files) {
    if (file.kind != JailedFile::Kind::write) continue;
    if (::chown(file.path.c_str(), ::geteuid(), ::getegid()) != 0) {
      logger("machine")->debug("{} stays its owner's: {}", file.path.string(), std::strerror(errno));
    }
  }
}

/// Nothing when the host does not allow this much; `obstacle` then says why, unless an earlier one has.
std::optional<Jailed> try_jail(ProcessSpec spec, const JailPlan& plan, Confinement confinement,
                               std::string& obstacle) {
  Jailed jailed{.cgroup = Cgroup::make(plan.limits)};
  for (;;) {
    JailStage stage(plan, confinement, jailed.cgroup ? jailed.cgroup->procs_fd() : -1);
    spec.stage = &stage;
    spec.namespaces = stage.namespaces();
    try {
      jailed.process = Process::start(spec);
      jailed.report = report_of(confinement, obstacle, jailed.cgroup);
      return jailed;
    } catch (const ChildStageError& e) {
      if (jailed.cgroup && JailStage::is_step_of_cgroup(e.step())) {
        jailed.cgroup.reset();
        continue;
      }
      if (confinement == Confinement::bare) throw;
      auto text = fmt::format("{}: {}", JailStage::step_name(e.step()), std::strerror(e.error_number()));
      logger("machine")->debug("a jail is not possible here: {}", text);
      if (obstacle.empty()) obstacle = text;
      return std::nullopt;
    }
  }
}

}  // namespace

JailPlan jail_plan(const QemuCommand& command) {
  using Kind = JailedFile::Kind;
  JailPlan plan{.limits = {.guest_memory = std::uint64_t{command.memory_mb} << 20,
                           .cpus = command.cpus,
                           .life = command.disk.kind == GuestDisk::Kind::overlay
                                       ? JailLimits::Life::machine
                                       : JailLimits::Life::short_lived}};
  for (const auto* folder : k_system_folders) plan.files.push_back({folder, Kind::tree});
  for (const auto* device : {"/dev/null", "/dev/zero", "/dev/random", "/dev/urandom"}) {
    plan.files.push_back({device, Kind::device});
  }
  if (command.accelerator == Accelerator::kvm) plan.files.push_back({"/dev/kvm", Kind::device});
  plan.files.push_back({"/etc/ld.so.cache"});
  plan.files.push_back({"/etc/alternatives", Kind::tree});
  add_program(plan, command.qemu);
  for (const auto& file : {command.kernel, command.initramfs, command.disk.backing})
    add_file(plan, file, Kind::read);
  add_file(plan, command.disk.file, Kind::write);
  add_file(plan, command.memory.file,
           command.memory.kind == GuestMemory::Kind::template_reader ? Kind::read : Kind::write);
  if (command.env().contains("LD_PRELOAD")) add_file(plan, command.shim, Kind::read);
  return plan;
}

Jailed start_in_jail(const ProcessSpec& spec, const JailPlan& plan, JailChoice choice) {
  if (choice == JailChoice::off) {
    if (::geteuid() == 0) take_back(plan);
    return {.process = Process::start(spec), .report = switched_off()};
  }
  std::string obstacle;
  for (auto confinement : confinements()) {
    if (::geteuid() == 0 && confinement != Confinement::root_namespaces) take_back(plan);
    auto jailed = try_jail(spec, plan, confinement, obstacle);
    if (!jailed) continue;
    if (choice == JailChoice::required) check_all_on(jailed->report);
    return std::move(*jailed);
  }
  throw Error(ErrorCode::internal, "No jail was tried");
}

}  // namespace machine

std::string_view to_string(JailPart part) {
  switch (part) {
    case JailPart::user:
      return "user";
    case JailPart::namespaces:
      return "namespaces";
    case JailPart::files:
      return "files";
    case JailPart::syscalls:
      return "syscalls";
    case JailPart::privileges:
      return "privileges";
    case JailPart::limits:
      break;
  }
  return "limits";
}

std::string_view to_string(JailState state) {
  switch (state) {
    case JailState::on:
      return "on";
    case JailState::off:
      return "off";
    case JailState::impossible:
      break;
  }
  return "not possible here";
}

JailReport probe_jail(const HostConfig& host) {
  using namespace machine;
  auto vmm = find_vmm(host, Accelerator::tcg);
  auto plan = jail_plan({.qemu = vmm.path, .memory_mb = 128});
  auto jailed = start_in_jail({.argv = {vmm.path.string(), "--version"},
                               .env = {{"LC_ALL", "C"}},
                               .working_dir = "/",
                               .new_session = true,
                               .die_with_parent = true},
                              plan, host.jail);
  auto status = jailed.process.wait(Deadline::after(10s));
  if (!status || status->exit_code != 0) {
    throw Error(
        ErrorCode::hypervisor_unavailable, fmt::format("{} does not start in the jail", vmm.path.string()),
        {.subject = vmm.path.string(), .hint = "Install the distribution's package qemu-system-x86."});
  }
  return jailed.report;
}

}  // namespace holt
