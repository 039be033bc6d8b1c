// The system calls that a process in the jail is refused, whatever QEMU's own filter does.
#pragma once

#include <linux/filter.h>
#include <vector>

namespace holt::machine {

/// A program for seccomp(2). Refused with EPERM: making, binding and connecting sockets; mounts and
/// namespaces; tracing and signals to other processes; owners, modes and attributes of files; kernel modules,
/// keys, BPF, performance counters, io_uring, clocks, ports, and whatever names a file by handle. clone3(2),
/// whose flags a filter cannot see, is unknown: the C library then uses clone(2). Another architecture's
/// calls end the process.
std::vector<sock_filter> syscall_filter();

/// Installs it in the calling process, whose own pid is the one that it may send signals to, and with it
/// no_new_privs. For a child before exec: does not allocate. False with errno set when the kernel refuses.
bool install_filter(std::vector<sock_filter>& filter) noexcept;

}  // namespace holt::machine
