// What every machine boots: a kernel, and an initramfs with holt-guest and the kernel's virtio modules.
//
//   auto engine = holt::image::EngineFiles::load(directories);   // made by scripts/setup
//   engine.kernel;      // ELF vmlinux with a PVH note, for -kernel
//   engine.initramfs;   // newc archive, for -initrd
//
// The files are named after their content below Directories::data/engine and never change in place;
// engine.json names the pair in force. May depend on base/ only.
#pragma once

#include "holt/base/directories.hpp"

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace holt::image {

/// The installed engine files. A value.
struct EngineFiles {
  std::filesystem::path kernel;
  std::string kernel_sha256;   ///< 64 hexadecimal digits
  std::string kernel_release;  ///< e.g. "6.1.0-37-cloud-amd64"; empty when not known
  std::filesystem::path initramfs;
  std::string initramfs_sha256;
  std::string guest_sha256;          ///< of the holt-guest inside
  std::vector<std::string> modules;  ///< names in load order; in the initramfs as /modules/NN-NAME.ko

  /// Throws Error RUNTIME_NOT_INSTALLED with a hint when nothing is installed or a file is missing or has
  /// another size than recorded.
  static EngineFiles load(const Directories& directories);
  /// As load, nothing instead of RUNTIME_NOT_INSTALLED.
  static std::optional<EngineFiles> find(const Directories& directories);
  /// Reads both files whole and compares their digests: true when they are what was installed.
  bool verify() const;
};

/// What to install.
struct EngineSource {
  std::filesystem::path kernel;  ///< bzImage (vmlinuz) or ELF vmlinux
  std::filesystem::path
      modules;  ///< folder with the modules of that kernel, e.g. .../lib/modules/6.1.0-37-cloud-amd64
  std::filesystem::path guest;  ///< holt-guest
  std::string kernel_release = {};
};

/// Unpacks the kernel, packs the initramfs, writes both and then engine.json; files of an older installation
/// go. The same source gives the same bytes. Safe between processes; running machines are not touched. Throws
/// Error: NOT_FOUND for a missing source, IMAGE_INVALID for a kernel or module that cannot be read,
/// STORAGE_FULL, STORAGE_ERROR.
EngineFiles install_engine(const Directories& directories, const EngineSource& source);

/// The ELF image inside a bzImage, or `image` itself when it is an ELF file. Payloads: lz4, gzip, xz, zstd.
/// Throws Error IMAGE_INVALID. Source: Documentation/x86/boot.rst, payload_offset and payload_length.
std::string unpack_kernel(std::string image);

}  // namespace holt::image
