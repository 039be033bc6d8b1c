// Processes known by pid and start time.
#include "holt/base/error.hpp"
#include "holt/base/files.hpp"
#include "holt/base/process.hpp"

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <fmt/format.h>

namespace holt {
namespace {

/// Of /proc/PID/stat, proc(5).
struct ProcessFacts {
  unsigned long flags = 0;        ///< field 9
  std::uint64_t start_ticks = 0;  ///< field 22
};

/// Nothing of a process that is gone or a zombie. One whose first thread has ended before the others is
/// neither: they hold its files and locks, also for a moment behind a SIGKILL.
std::optional<ProcessFacts> facts_of(pid_t pid) {
  auto stat = read_file_if_exists(fmt::format("/proc/{}/stat", pid), 4096);
  if (!stat) return std::nullopt;
  // The name (field 2) may hold anything, parentheses too: fields count from the last one.
  std::size_t at = stat->rfind(')');
  if (at == std::string::npos || at + 2 >= stat->size()) return std::nullopt;
  char state = (*stat)[at + 2];
  at += 2;
  ProcessFacts facts;
  long threads = 0;  // field 20
  for (int field = 3; field < 22; ++field) {
    if (field == 9) facts.flags = std::strtoul(stat->c_str() + at, nullptr, 10);
    if (field == 20) threads = std::strtol(stat->c_str() + at, nullptr, 10);
    at = stat->find(' ', at);
    if (at == std::string::npos) return std::nullopt;
    ++at;
  }
  if (state == 'X' || (state == 'Z' && threads <= 1)) return std::nullopt;
  facts.start_ticks = std::strtoull(stat->c_str() + at, nullptr, 10);
  return facts;
}

}  // namespace

std::optional<ProcessIdentity> identify_process(pid_t pid) {
  auto facts = facts_of(pid);
  if (!facts) return std::nullopt;
  return ProcessIdentity{.pid = pid, .start_ticks = facts->start_ticks};
}

bool is_alive(const ProcessIdentity& process) {
  auto now = facts_of(process.pid);
  return now && now->start_ticks == process.start_ticks;
}

bool is_ending(const ProcessIdentity& process) {
  constexpr unsigned long k_exiting = 0x4;  // PF_EXITING, include/linux/sched.h
  auto now = facts_of(process.pid);
  return !now || now->start_ticks != process.start_ticks || (now->flags & k_exiting) != 0;
}

bool kill_and_wait(const ProcessIdentity& process, Deadline deadline) {
  Fd pidfd(static_cast<int>(::syscall(SYS_pidfd_open, process.pid, 0)));
  int error = errno;
  // The pidfd is the process seen now: check that it is the one meant before it gets a signal.
  if (!is_alive(process)) return true;
  if (!pidfd) throw system_error(error, fmt::format("watch the process {}", process.pid));
  ::syscall(SYS_pidfd_send_signal, pidfd.get(), SIGKILL, nullptr, 0);
  struct pollfd ready{pidfd.get(), POLLIN, 0};
  while (is_alive(process)) {
    int n = ::poll(&ready, 1, deadline.poll_timeout());
    if (n == 0 && deadline.passed()) return false;
    if (n > 0) return true;
  }
  return true;
}

}  // namespace holt
