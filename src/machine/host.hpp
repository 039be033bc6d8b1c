// The programs and files of this host, found.
#pragma once

#include "holt/machine/availability.hpp"
#include "holt/machine/host_config.hpp"
#include "machine/qemu_command.hpp"

#include <filesystem>
#include <string>

namespace holt::machine {

/// Where the VMM is, and what it can do.
struct VmmProgram {
  std::filesystem::path path = {};
  std::string version = {};  ///< first line of --version
  TemplateGuard guard = TemplateGuard::shim;
};

/// What every machine boots.
struct BootFiles {
  std::filesystem::path kernel = {};
  std::string kernel_sha256 = {};
  std::filesystem::path initramfs = {};
  std::string initramfs_sha256 = {};
};

/// Finds QEMU and asks it, once as long as it stays the same file. Throws Error HYPERVISOR_UNAVAILABLE. Under
/// KVM the smaller qemu-system-x86_64-microvm is taken where it is installed with a system call filter
/// (-sandbox) and none was chosen.
VmmProgram find_vmm(const HostConfig& host, Accelerator accelerator);
/// Throws Error RUNTIME_NOT_INSTALLED when kernel or initramfs is missing.
BootFiles find_boot_files(const HostConfig& host);
/// The monitor program. Throws Error RUNTIME_NOT_INSTALLED.
std::filesystem::path find_monitor(const HostConfig& host);
/// The preloaded guard of templates. Throws Error RUNTIME_NOT_INSTALLED.
std::filesystem::path find_shim(const HostConfig& host);

/// Folder of the running program.
std::filesystem::path program_folder();

}  // namespace holt::machine
