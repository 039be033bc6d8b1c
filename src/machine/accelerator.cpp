#include "holt/base/encoding.hpp"
#include "holt/base/error.hpp"
#include "holt/base/files.hpp"
#include "holt/machine/availability.hpp"
#include "machine/host.hpp"
#include "machine/host_facts.hpp"
#include "machine/stub_kernel.hpp"
#include "machine/vmm.hpp"

#include <array>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <gnu/libc-version.h>
#include <poll.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <fmt/format.h>

namespace holt {

using namespace machine;

namespace {

using namespace std::chrono_literals;

constexpr const char* k_kvm = "/dev/kvm";
// A boot of the stub takes 50 ms where KVM works, and a second where KVM itself is nested in an emulator.
constexpr auto k_probe_deadline = 10s;
constexpr std::size_t k_verdict_limit = std::size_t{16} << 10;
constexpr std::size_t k_console_limit = std::size_t{64} << 10;

/// Why KVM cannot even be opened; nothing when it can.
std::optional<std::string> kvm_obstacle() {
  Fd fd(::open(k_kvm, O_RDWR | O_CLOEXEC));
  if (fd) return std::nullopt;
  return fmt::format("{} cannot be opened: {}", k_kvm, std::strerror(errno));
}

/// Where the verdict for this kernel, VMM and device is remembered, and the first line of the file.
struct VerdictFile {
  std::filesystem::path path;
  std::string key;
};

VerdictFile verdict_file(const HostConfig& host, const VmmProgram& vmm) {
  struct stat info{};
  ::stat(k_kvm, &info);
  auto key = fmt::format("kernel {} | vmm {} {} {} | device {}:{} inode {} user {}", host_kernel_release(),
                         vmm.path.string(), vmm.version, file_identity(vmm.path), gnu_dev_major(info.st_rdev),
                         gnu_dev_minor(info.st_rdev), info.st_ino, ::geteuid());
  return {host.directories.cache / "accelerator" / sha256_hex(key).substr(0, 32), key};
}

std::optional<AcceleratorVerdict> remembered(const VerdictFile& file) {
  auto text = read_file_if_exists(file.path, k_verdict_limit);
  if (!text || !text->starts_with(file.key + "\n")) return std::nullopt;
  auto rest = text->substr(file.key.size() + 1);
  auto end = rest.find('\n');
  if (end == std::string::npos) return std::nullopt;
  auto word = rest.substr(0, end);
  if (word != "kvm" && word != "tcg") return std::nullopt;
  return AcceleratorVerdict{word == "kvm" ? Accelerator::kvm : Accelerator::tcg, rest.substr(end + 1)};
}

/// Reads until the sign of the stub kernel has come; `seen` is what QEMU said, for when it does not.
bool sign_arrives(int console, Deadline deadline, std::string& seen) {
  while (seen.find(k_stub_sign) == std::string::npos && seen.size() < k_console_limit) {
    pollfd ready{console, POLLIN, 0};
    int n = ::poll(&ready, 1, deadline.poll_timeout());
    if (n == 0 && deadline.passed()) return false;
    if (n <= 0) continue;
    std::array<char, 4096> bytes;
    ssize_t got = ::read(console, bytes.data(), bytes.size());
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    seen.append(bytes.data(), static_cast<std::size_t>(got));
  }
  return seen.find(k_stub_sign) != std::string::npos;
}

AcceleratorVerdict boot_stub(const HostConfig& host, const VmmProgram& vmm) {
  make_private_directory(host.directories.cache);
  TempDir scratch(host.directories.cache, "probe-");
  auto kernel = scratch.path() / "stub.elf";
  auto initramfs = scratch.path() / "empty";
  write_file_atomically(kernel, stub_kernel());
  write_file_atomically(initramfs, std::string(1, '\0'));
  auto process = Vmm::start({.qemu = vmm.path,
                             .accelerator = Accelerator::kvm,
                             .cpus = 1,
                             .memory_mb = 128,
                             .kernel = kernel,
                             .initramfs = initramfs,
                             .jail = host.jail});
  std::string seen;
  if (sign_arrives(process.console().get(), Deadline::after(k_probe_deadline), seen)) {
    return {Accelerator::kvm, "A guest booted under KVM"};
  }
  auto first_line = printable(seen.substr(0, seen.find('\n')), 300);
  return {Accelerator::tcg, fmt::format("{} opens, but no guest booted under KVM within {} s{}{}", k_kvm,
                                        std::chrono::seconds(k_probe_deadline).count(),
                                        first_line.empty() ? "" : "; QEMU says: ", first_line)};
}

std::optional<Availability> platform_obstacle() {
#if !defined(__x86_64__) || !defined(__linux__)
  return Availability{false, ErrorCode::unsupported_platform, "holt runs on Linux on x86-64"};
#endif
  int major = 0;
  int minor = 0;
  if (std::sscanf(::gnu_get_libc_version(), "%d.%d", &major, &minor) == 2 &&
      (major < 2 || (major == 2 && minor < 34))) {
    return Availability{false, ErrorCode::unsupported_platform,
                        fmt::format("glibc {} is older than 2.34", ::gnu_get_libc_version())};
  }
  return std::nullopt;
}

}  // namespace

std::optional<AcceleratorVerdict> cached_accelerator(const HostConfig& host) {
  auto vmm = find_vmm(host, Accelerator::kvm);
  if (auto obstacle = kvm_obstacle()) return AcceleratorVerdict{Accelerator::tcg, *obstacle};
  return remembered(verdict_file(host, vmm));
}

bool forget_accelerator(const HostConfig& host) {
  auto file = verdict_file(host, find_vmm(host, Accelerator::kvm));
  auto verdict = remembered(file);
  return verdict && verdict->accelerator != Accelerator::kvm && ::unlink(file.path.c_str()) == 0;
}

AcceleratorVerdict probe_accelerator(const HostConfig& host) {
  if (auto verdict = cached_accelerator(host)) return *verdict;
  auto vmm = find_vmm(host, Accelerator::kvm);
  auto file = verdict_file(host, vmm);
  make_private_directory(file.path.parent_path());
  auto lock_path = file.path;
  lock_path += ".lock";
  auto lock = FileLock::acquire(lock_path, Deadline::after(2 * k_probe_deadline));
  if (auto verdict = remembered(file)) return *verdict;
  auto verdict = boot_stub(host, vmm);
  write_file_atomically(file.path,
                        fmt::format("{}\n{}\n{}", file.key, to_string(verdict.accelerator), verdict.detail));
  return verdict;
}

Accelerator choose_accelerator(const HostConfig& host) {
  if (host.accelerator == AcceleratorChoice::tcg) return Accelerator::tcg;
  auto verdict = probe_accelerator(host);
  if (host.accelerator == AcceleratorChoice::require_kvm && verdict.accelerator != Accelerator::kvm) {
    throw Error(
        ErrorCode::kvm_unavailable, fmt::format("KVM is required and does not work here: {}", verdict.detail),
        {.subject = k_kvm,
         .hint = "Use a host with working virtualization, or allow software emulation, which is no isolation "
                 "boundary."});
  }
  return verdict.accelerator;
}

Availability local_availability(const HostConfig& host) noexcept {
  try {
    if (auto obstacle = platform_obstacle()) return *obstacle;
    try {
      find_monitor(host);
      find_shim(host);
      find_boot_files(host);
    } catch (const Error& e) {
      return {false, ErrorCode::runtime_not_installed, e.what()};
    }
    if (host.accelerator == AcceleratorChoice::require_kvm) {
      if (auto obstacle = kvm_obstacle())
        return {.available = false, .code = ErrorCode::kvm_unavailable, .reason = std::move(obstacle)};
      auto verdict = cached_accelerator(host);
      if (verdict && verdict->accelerator != Accelerator::kvm) {
        return {false, ErrorCode::kvm_unavailable, verdict->detail};
      }
    }
    find_vmm(host, Accelerator::tcg);
    return {.available = true};
  } catch (const std::exception& e) {
    return {false, ErrorCode::hypervisor_unavailable, e.what()};
  }
}

Availability local_availability() noexcept {
  try {
    return local_availability(HostConfig::from_environment());
  } catch (const std::exception& e) {
    return {false, ErrorCode::runtime_not_installed, e.what()};
  }
}

}  // namespace holt
