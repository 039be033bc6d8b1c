// holt-monitor FOLDER: the process behind one machine. Started by the library with three descriptors
// (machine/launch.hpp); not meant to be started by hand.

#include "holt/base/error.hpp"
#include "holt/base/log.hpp"
#include "machine/console.hpp"
#include "machine/event_log.hpp"
#include "machine/host_facts.hpp"
#include "machine/suspension.hpp"
#include "monitor/listener.hpp"
#include "monitor/monitor.hpp"
#include "monitor/owner_watch.hpp"

#include <chrono>
#include <csignal>
#include <cstdio>
#include <exception>
#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fmt/format.h>

namespace {

using namespace holt;
using namespace holt::machine;

std::string read_to_end(int fd, std::size_t limit) {
  std::string text;
  char bytes[16384];
  for (ssize_t n = 0; (n = ::read(fd, bytes, sizeof bytes)) > 0 && text.size() <= limit;) {
    text.append(bytes, static_cast<std::size_t>(n));
  }
  return text;
}

/// The client waits for the process it started; the machine belongs to nobody's process tree.
void leave_parent() {
  pid_t child = ::fork();
  if (child < 0) throw system_error(errno, "fork the monitor");
  if (child > 0) ::_exit(0);
}

void report(int control, const StartReport& report) {
  auto text = encode_report(report);
  [[maybe_unused]] ssize_t sent = ::send(control, text.data(), text.size(), MSG_NOSIGNAL);
}

MachineStatus starting_status(const Launch& launch) {
  return {.state = MachineState::starting,
          .monitor = identify_process(::getpid()),
          .host_boot_id = host_boot_id(),
          .accelerator = launch.shape.accelerator,
          .cpus = launch.shape.cpus,
          .memory_mb = launch.shape.memory_mb};
}

MachineStatus ended_status(MachineStatus status, const monitor::Ending& ending) {
  status.state = ending.state;
  status.failure = ending.failure;
  status.vmm.reset();
  return status;
}

StartReport report_of(const Error& e, const MachineFolder& folder) {
  return {.code = e.code(),
          .message = e.what(),
          .hint = e.hint(),
          .causes = e.causes(),
          .console = last_lines_of(folder.console_log())};
}

/// Brings the machine up; its status and its socket are there then.
monitor::StartedMachine start(const Launch& launch, const MachineRecord& record, const MachineFolder& folder,
                              MachineStatus& status, const Fd& control) {
  monitor::OwnerWatch watch(launch.ownership != Ownership::independent ? control.get() : -1);
  auto on_vmm = [&](pid_t vmm) {
    watch.kill_at_end(vmm);
    status.vmm = identify_process(vmm);
    folder.write_status(status);
  };
  return launch.kind == LaunchKind::resume ? monitor::resume_machine(launch, record, folder, on_vmm)
                                           : monitor::start_machine(launch, record, folder, on_vmm);
}

/// From start to end of the machine. Returns when QEMU is dead.
monitor::Ending live(const Launch& launch, const MachineRecord& record, const MachineFolder& folder,
                     MachineStatus& status, Fd control) {
  std::optional<monitor::StartedMachine> started;
  Fd listener;
  try {
    started.emplace(start(launch, record, folder, status, control));
    status.state = MachineState::running;
    status.started_at = wall_now();
    status.boot_kind = started->boot_kind;
    status.boot_time = started->boot_time;
    for (const auto& part : started->vmm.jail()) {
      status.jail[std::string(to_string(part.part))] = to_string(part.state);
    }
    listener = monitor::listen_in(folder);
    folder.write_status(status);
    EventLog(folder.event_log())
        .append({.kind = launch.kind == LaunchKind::resume ? "resumed" : "started",
                 .message =
                     fmt::format("It runs ({}, {} ms)", to_string(started->boot_kind),
                                 std::chrono::ceil<std::chrono::milliseconds>(started->boot_time).count())});
  } catch (const Error& e) {
    EventLog(folder.event_log()).append({.kind = "start-failed", .message = e.what(), .code = e.code()});
    report(control.get(), report_of(e, folder));
    // Ends with a VMM that may be running: its object kills it.
    return {MachineState::failed, MachineFailure{.code = e.code(), .message = e.what(), .at = wall_now()}};
  }
  report(control.get(), {.started = true, .template_bad = started->template_bad});
  monitor::Monitor monitor(std::move(*started), launch, record, folder, status, std::move(listener),
                           std::move(control));
  return monitor.run();
}

/// An owner that died while the machine was starting has not been seen by a Monitor.
bool goes_with_owner(const Launch& launch, const monitor::Ending& ending) {
  if (launch.ownership != Ownership::removed) return false;
  return ending.owner_ended || !launch.owner || !is_alive(*launch.owner);
}

void finish(const Launch& launch, const MachineRecord& record, const MachineFolder& folder,
            const MachineStatus& status, const monitor::Ending& ending) {
  try {
    monitor::remove_socket(folder);
    bool goes = record.config.lifetime == Lifetime::ephemeral || goes_with_owner(launch, ending);
    if (goes) return MachineFolders(launch.machines).erase(folder);
    folder.write_status(ended_status(status, ending));
  } catch (const Error& e) {
    // The next command on the machine finds it without a monitor and concludes the same.
    logger("monitor")->warn("{}", e.what());
  }
}

/// Of itself and some clients. Below that it would lose them without a word.
void require_descriptors() {
  constexpr rlim_t k_fewest = 64;
  rlimit files{};
  if (::getrlimit(RLIMIT_NOFILE, &files) != 0 || files.rlim_cur >= k_fewest) return;
  throw Error(ErrorCode::limit_exceeded,
              fmt::format("The monitor of a machine may have {} files open here and needs {}", files.rlim_cur,
                          k_fewest),
              {.hint = "Raise the limit of open files, also the hard one, with 'ulimit -n'."});
}

int run(const std::filesystem::path& path) {
  // The lock is held by being open; it must not get into QEMU.
  Fd lock(k_lock_fd);
  Fd control(k_control_fd);
  Fd launch_source(k_launch_fd);
  for (int fd : {k_lock_fd, k_control_fd, k_launch_fd}) ::fcntl(fd, F_SETFD, FD_CLOEXEC);

  MachineFolder folder(path);
  Launch launch;
  MachineRecord record;
  MachineStatus status;
  try {
    launch = decode_launch(read_to_end(launch_source.get(), std::size_t{16} << 20));
    launch_source.reset();
    require_descriptors();
    status = starting_status(launch);
    record = folder.read_record();
    // Of a suspension that was not finished, or of a resume that failed.
    if (launch.kind == LaunchKind::start) delete_suspended_files(folder);
    folder.write_status(status);
  } catch (const Error& e) {
    report(control.get(), report_of(e, folder));
    return 1;
  }
  auto ending = live(launch, record, folder, status, std::move(control));
  finish(launch, record, folder, status, ending);
  return 0;
}

void set_limits() {
  // Guest memory and environments must not land in a core file, of this process or of QEMU.
  rlimit none{0, 0};
  ::setrlimit(RLIMIT_CORE, &none);
  // Each client takes a descriptor.
  rlimit files{};
  if (::getrlimit(RLIMIT_NOFILE, &files) == 0) {
    files.rlim_cur = files.rlim_max;
    ::setrlimit(RLIMIT_NOFILE, &files);
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fputs("holt-monitor is started by holt itself, with the folder of a machine.\n", stderr);
    return 2;
  }
  try {
    ::signal(SIGPIPE, SIG_IGN);
    ::umask(077);
    // Memory of the monitor holds environments; it must not land in a core file or be read by a debugger.
    ::prctl(PR_SET_DUMPABLE, 0);
    set_limits();
    leave_parent();
    return run(argv[1]);
  } catch (const std::exception& e) {
    logger("monitor")->error("{}", e.what());
    return 1;
  }
}
