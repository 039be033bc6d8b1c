// The first steps of PID 1 in the initramfs, up to the moment a template may be taken: kernel file systems,
// modules, cgroups, the port. Nothing here reads randomness, opens a network socket or touches the disk.
#pragma once

#include "guest/outcome.hpp"
#include "holt/base/fd.hpp"

#include <chrono>
#include <string>

namespace holt::guest {

/// /proc, /sys, /dev, /dev/pts, /dev/shm and the cgroups, and descriptors 0 to 2 on the console.
void mount_kernel_file_systems();

/// Loads /modules/* in the order of their names. A module that is there already, or not for this machine, is
/// passed over with a line on the console.
void load_modules();

/// Groups of the guest program and of commands; the folder for commands, empty when the kernel has no cgroup
/// v2.
std::string set_up_cgroups();

/// Keeps this process out of the reach of the out-of-memory killer and of the limit of open files.
void protect_self();

/// The virtio-serial port named `name`, waited for until it is there.
Outcome<Fd> open_port(std::string_view name, std::chrono::milliseconds limit);

/// A line on the console.
void console(std::string_view line);

/// Writes a whole small file of the kernel; false with errno when that fails.
bool write_kernel_file(const std::string& path, std::string_view text);

}  // namespace holt::guest
