#include "machine/lifecycle.hpp"

#include "holt/base/error.hpp"
#include "holt/base/log.hpp"
#include "machine/console.hpp"
#include "machine/ending.hpp"
#include "machine/host_facts.hpp"
#include "machine/host_memory.hpp"
#include "machine/image_file.hpp"
#include "machine/info.hpp"
#include "machine/suspension.hpp"
#include "machine/tsc.hpp"

#include <array>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>

#include <fmt/format.h>

namespace holt::machine {
namespace {

using namespace std::chrono_literals;

// Behind the monitor's own 30 s for all attempts of a start, and 20 s for its turn on a busy host.
constexpr auto k_start_deadline = 55s;
constexpr auto k_template_deadline = 90s;
// Another's whole start, with the template that it may build first.
constexpr auto k_start_wait = k_template_deadline + k_start_deadline;

Fd memory_file(const std::string& content) {
  Fd fd(::memfd_create("holt-launch", MFD_CLOEXEC));
  if (!fd) throw system_error(errno, "make a memory file");
  write_all(fd.get(), content);
  ::lseek(fd.get(), 0, SEEK_SET);
  return fd;
}

Process start_monitor(const MachineFolder& folder, const FileLock& lock, const Fd& control,
                      const Launch& launch, const HostConfig& host) {
  Fd source = memory_file(encode_launch(launch));
  auto log_path = folder.path() / "monitor.log";
  Fd log(::open(log_path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!log) throw system_error(errno, fmt::format("write {}", log_path.string()), log_path);
  std::map<std::string, std::string> env{{"LC_ALL", "C"}};
  if (const char* level = std::getenv("HOLT_LOG")) env["HOLT_LOG"] = level;
  return Process::start({.argv = {find_monitor(host).string(), folder.path().string()},
                         .env = env,
                         .working_dir = "/",
                         .fds = {{log.get(), 2},
                                 {lock.fd(), k_lock_fd},
                                 {control.get(), k_control_fd},
                                 {source.get(), k_launch_fd}},
                         .new_session = true});
}

/// The monitor's one line, or nothing when it ended without it.
std::string read_report(const Fd& control, const MachineFolder& folder, Deadline deadline,
                        const std::optional<CancellationToken>& cancel) {
  constexpr std::size_t k_limit = std::size_t{64} * 1024;
  std::string text;
  while (text.find('\n') == std::string::npos && text.size() < k_limit) {
    std::array<pollfd, 2> fds{{{control.get(), POLLIN, 0}, {cancel ? cancel->fd() : -1, POLLIN, 0}}};
    int ready = ::poll(fds.data(), fds.size(), deadline.poll_timeout());
    check_wait(folder, ready == 0 ? deadline : Deadline::never(), cancel, "start");
    if (ready <= 0 || fds[0].revents == 0) continue;
    std::array<char, 4096> bytes;
    ssize_t n = ::recv(control.get(), bytes.data(), bytes.size(), MSG_DONTWAIT);
    if (n < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (n <= 0) break;
    text.append(bytes.data(), static_cast<std::size_t>(n));
  }
  return text;
}

Error start_failure(const MachineFolder& folder, const StartReport& report) {
  auto causes = report.causes;
  if (!report.console.empty()) causes.push_back("The console's last lines: " + report.console);
  if (report.message.starts_with("The monitor ended")) {
    auto log = last_lines_of(folder.path() / "monitor.log");
    if (!log.empty()) causes.push_back("The monitor said: " + log);
  }
  return {report.code, report.message, {.subject = name_of(folder), .hint = report.hint, .causes = causes}};
}

/// What a suspended machine needs to go on here. Throws Error INVALID_STATE when it was another QEMU's.
Launch prepare_resume(const MachineFolder& folder, const StartOptions& options, const HostConfig& host) {
  auto suspension = read_suspension(folder);
  TemplateShape shape{.vmm = find_vmm(host, suspension.accelerator),
                      .shim = find_shim(host),
                      .boot = {},
                      .accelerator = suspension.accelerator,
                      .cpus = suspension.cpus,
                      .memory_mb = suspension.memory_mb,
                      .tsc_khz = suspension.tsc_khz,
                      .processor = suspension.processor,
                      .jail = host.jail};
  if (shape.vmm.version != suspension.vmm_version) {
    throw Error(ErrorCode::invalid_state,
                fmt::format("{} was suspended by \"{}\" and cannot go on in \"{}\"", name_of(folder),
                            printable(suspension.vmm_version), printable(shape.vmm.version)),
                {.subject = name_of(folder),
                 .hint = fmt::format("Use that QEMU, or give its memory up with 'holt stop --kill {}'.",
                                     name_of(folder))});
  }
  if (!suspension.processor.empty() && suspension.processor != host_processor()) {
    throw Error(
        ErrorCode::invalid_state,
        fmt::format("{} was suspended on another processor and cannot go on on this one", name_of(folder)),
        {.subject = name_of(folder),
         .hint = fmt::format("Resume it there, or give its memory up with 'holt stop --kill {}'.",
                             name_of(folder))});
  }
  if (options.on_progress) {
    options.on_progress({.step = StartProgress::Step::booting, .text = "Resuming the machine"});
  }
  return {.kind = LaunchKind::resume, .shape = shape, .machines = MachineFolders(host.directories).root()};
}

/// Makes sure that nothing of a start that failed lives on.
void await_end(const MachineFolder& folder) {
  try {
    end_by_force(folder, Deadline::after(k_remove_deadline));
  } catch (const Error& e) {
    // An ephemeral machine has removed itself.
    if (e.code() != ErrorCode::not_found) throw;
  }
}

}  // namespace

Launch prepare_launch(const Resources& resources, const StartOptions& options, const HostConfig& host) {
  check_memory_fits(resources.memory_mb, host_memory_bytes());
  check_address_space(resources.memory_mb, address_space_bytes());
  auto tell = [&](StartProgress::Step step, const std::string& text) {
    if (options.on_progress) options.on_progress({.step = step, .text = text});
  };
  if (host.accelerator != AcceleratorChoice::tcg && !cached_accelerator(host)) {
    tell(StartProgress::Step::probing_accelerator, "Trying whether KVM works here");
  }
  auto accelerator = choose_accelerator(host);
  TemplateShape shape{.vmm = find_vmm(host, accelerator),
                      .shim = find_shim(host),
                      .boot = find_boot_files(host),
                      .accelerator = accelerator,
                      .cpus = resources.cpus,
                      .memory_mb = resources.memory_mb,
                      .tsc_khz = stable_tsc_khz(host.directories.cache),
                      .processor = accelerator == Accelerator::kvm ? host_processor() : std::string(),
                      .jail = host.jail};
  TemplateProgress progress{
      .on_build =
          [&] {
            tell(StartProgress::Step::building_template,
                 fmt::format("Booting a template for machines of {} vCPUs and {} MiB, once", resources.cpus,
                             resources.memory_mb));
          },
      .on_wait =
          [&] { tell(StartProgress::Step::waiting_for_template, "Waiting for another process's template"); },
      .deadline = options.call.deadline.value_or(Deadline::after(k_template_deadline)),
      .cancel = options.call.cancel};
  Launch launch{.shape = shape, .machines = MachineFolders(host.directories).root()};
  launch.start_from = TemplateStore(host.directories.cache / "templates").get(shape, progress);
  tell(StartProgress::Step::booting, "Starting the machine");
  return launch;
}

Fd launch_machine(const MachineFolder& folder, FileLock lock, const Launch& launch,
                  const StartOptions& options, const HostConfig& host) {
  auto [here, there] = socket_pair();
  auto process = start_monitor(folder, lock, there, launch, host);
  there.reset();
  // From here on the monitor holds the lock alone.
  {
    FileLock given_away = std::move(lock);
  }
  auto deadline = options.call.deadline.value_or(Deadline::after(k_start_deadline));
  StartReport report;
  try {
    report = decode_report(read_report(here, folder, deadline, options.call.cancel));
    process.wait(deadline);
  } catch (const Error&) {
    await_end(folder);
    throw;
  }
  if (report.template_bad && launch.start_from) {
    logger("machine")->warn("The template {} did not start {} and is thrown away", launch.shape.key(),
                            name_of(folder));
    TemplateStore(host.directories.cache / "templates").discard(launch.shape, *launch.start_from);
  }
  if (report.started) return std::move(here);
  auto failure = start_failure(folder, report);
  await_end(folder);
  throw failure;
}

Ownership ownership_of(OwnerEnd end) {
  switch (end) {
    case OwnerEnd::keep:
      return Ownership::independent;
    case OwnerEnd::stop:
      return Ownership::stopped;
    case OwnerEnd::remove:
      return Ownership::removed;
  }
  return Ownership::independent;
}

void own(Launch& launch, Ownership ownership) {
  launch.ownership = ownership;
  if (ownership != Ownership::independent) launch.owner = identify_process(::getpid());
}

Fd start_machine(const MachineFolder& folder, const StartOptions& options, const HostConfig& host) {
  auto deadline = options.call.deadline.value_or(Deadline::after(k_start_wait));
  for (;;) {
    auto lock = try_lock(folder);
    if (!lock) {
      // Somebody starts it, or it runs, or it is just ending.
      auto status = folder.read_status();
      if (machine_state(folder) == MachineState::running) return {};
      if (status.state == MachineState::paused && status.failure) {
        throw Error(status.failure->code, status.failure->message,
                    {.subject = name_of(folder), .retryable = true});
      }
      if (status.state == MachineState::paused &&
          change_life(folder, protocol::LifeChange::resume, deadline, options.call.cancel)) {
        return {};
      }
      check_wait(folder, deadline, options.call.cancel, "start");
      std::this_thread::sleep_for(k_poll_step);
      continue;
    }
    auto record = folder.read_record();
    require_image_file(record, options.call, host);
    if (!std::filesystem::exists(folder.disk())) {
      throw Error(ErrorCode::storage_error, fmt::format("The disk of {} is gone", name_of(folder)),
                  {.subject = name_of(folder), .hint = "Remove the machine."});
    }
    if (!end_vmm(folder, deadline)) {
      throw Error(ErrorCode::timeout,
                  fmt::format("The VMM of {} from its last life cannot be ended", name_of(folder)),
                  {.subject = name_of(folder)});
    }
    auto launch = folder.is_suspended() ? prepare_resume(folder, options, host)
                                        : prepare_launch(record.config.resources, options, host);
    launch.env = folder.read_env();
    own(launch, ownership_of(options.owner_end));
    bool owned = launch.ownership != Ownership::independent;
    auto control = launch_machine(folder, std::move(*lock), launch, options, host);
    return owned ? std::move(control) : Fd();
  }
}

}  // namespace holt::machine
