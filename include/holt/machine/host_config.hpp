// What of the host the engine uses: folders, programs, kernel, accelerator, registries. A value; nothing of
// it is global.
//
//   auto host = holt::HostConfig::from_environment();
//   host.accelerator = holt::AcceleratorChoice::require_kvm;
//   auto machine = holt::Machine::create({.image = "holt/default"}, {}, host);
#pragma once

#include "holt/base/directories.hpp"
#include "holt/image/pull.hpp"

#include <filesystem>

namespace holt {

enum class AcceleratorChoice {
  automatic,    ///< KVM where it is proved to work, else TCG
  require_kvm,  ///< refuse with KVM_UNAVAILABLE where KVM is not proved
  tcg,          ///< software emulation
};

/// How much of the jail around QEMU (holt/machine/jail.hpp) there must be.
enum class JailChoice {
  automatic,  ///< all that the host allows
  required,   ///< refuse with NOT_SUPPORTED where a part of it is not possible
  off,        ///< QEMU runs with its own system call filter and the user's rights: for finding faults
};

/// Empty paths are looked for: see each field.
struct HostConfig {
  Directories directories;
  std::filesystem::path qemu = {};  ///< $HOLT_QEMU, else qemu-system-x86_64 on PATH
  std::filesystem::path monitor =
      {};  ///< $HOLT_MONITOR, else beside the running program, else the install folder
  std::filesystem::path shim = {};       ///< $HOLT_SHIM, else beside the monitor: holt-memro.so
  std::filesystem::path kernel = {};     ///< $HOLT_KERNEL, else the engine file vmlinux
  std::filesystem::path initramfs = {};  ///< $HOLT_INITRAMFS, else the engine file initramfs.cpio
  AcceleratorChoice accelerator = AcceleratorChoice::automatic;  ///< $HOLT_ACCELERATOR: auto, kvm or tcg
  JailChoice jail = JailChoice::automatic;                       ///< $HOLT_JAIL: auto, require or off
  /// How images are pulled: $HOLT_INSECURE (1 or 0), $HOLT_CA_FILE, $HOLT_AUTH_FILE, and $HOLT_MIRROR,
  /// HOST=URL with spaces between several.
  image::RegistryOptions registry = {};
  /// What images may cost: $HOLT_IMAGE_MAX_BYTES (file data of all layers, and one file; up to 1 TiB) and
  /// $HOLT_IMAGE_MAX_ENTRIES (up to 10,000,000; above the default, memory and time of the names grow alike).
  image::Limits image_limits = {};

  /// From Directories::from_environment() and the variables above; never looks at files.
  /// Throws Error INVALID_CONFIG for a bad value of one, which it names.
  static HostConfig from_environment();
};

}  // namespace holt
