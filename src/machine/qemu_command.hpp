// The command line of QEMU as plain data: what a machine is made of, apart from running it.
//
//   QemuCommand command{.qemu = "/usr/bin/qemu-system-x86_64", .accelerator = Accelerator::tcg, ...};
//   command.argv();
//
// Recipes and the reasons for each switch: docs/machine.md, "The QEMU command".
#pragma once

#include "holt/machine/host_config.hpp"
#include "holt/machine/types.hpp"

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace holt::machine {

/// Where guest RAM lives.
struct GuestMemory {
  enum class Kind {
    anonymous,        ///< no file: cold boots
    template_writer,  ///< a shared mapping: what the guest writes becomes the template's content
    template_reader,  ///< a private mapping of a template that must never change
  };
  Kind kind = Kind::anonymous;
  std::filesystem::path file = {};
};

/// How a read-only template is kept from being opened for writing.
enum class TemplateGuard {
  shim,  ///< QEMU opens the file for writing even for a private mapping: the preloaded shim turns that down
  rom_off,  ///< QEMU knows readonly=on,rom=off
};

/// The guest's disk.
struct GuestDisk {
  enum class Kind { placeholder, overlay };
  enum class Flush { reaches_host, never };
  Kind kind = Kind::placeholder;  ///< 1 MiB that reads as zeroes: templates and probes
  std::filesystem::path file = {};
  std::filesystem::path backing = {};
  Flush flush = Flush::reaches_host;
};

/// Descriptors in QEMU's process.
inline constexpr int k_qmp_fd = 3;
inline constexpr int k_agent_fd = 4;
inline constexpr int k_console_fd = 5;

struct QemuCommand {
  std::filesystem::path qemu = {};
  std::filesystem::path shim = {};
  Accelerator accelerator = Accelerator::tcg;
  unsigned cpus = 2;
  unsigned memory_mb = 1024;
  unsigned tsc_khz = 0;
  GuestMemory memory = {};
  TemplateGuard guard = TemplateGuard::shim;
  GuestDisk disk = {};
  std::filesystem::path kernel = {};
  std::filesystem::path initramfs = {};
  enum class Start { boot, wait_for_state };
  Start start = Start::boot;
  JailChoice jail = JailChoice::automatic;

  std::vector<std::string> argv() const;
  /// The whole environment of QEMU.
  std::map<std::string, std::string> env() const;
};

/// A path inside a comma-separated QEMU option: commas doubled.
std::string option_value(const std::filesystem::path& path);

}  // namespace holt::machine
