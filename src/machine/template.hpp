// Templates: a guest booted once to the point where holt-guest answers and nothing is mounted, from which
// every machine of the same shape starts.
//
// Layout below Directories::cache/templates:
//   KEY/memory         RAM, sparse, read-only, mapped privately by every machine
//   KEY/state          device state of QEMU
//   KEY/kernel, KEY/empty  stand-ins for kernel and initramfs: a restored guest has its own
//   KEY/template.json  what it was made of, and digests of the two
//   KEY.lock           held while the template is built or thrown away
#pragma once

#include "holt/base/cancellation.hpp"
#include "holt/base/deadline.hpp"
#include "machine/host.hpp"
#include "machine/qemu_command.hpp"

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace holt::machine {

/// Everything that a template depends on.
struct TemplateShape {
  VmmProgram vmm = {};
  std::filesystem::path shim = {};
  BootFiles boot = {};
  Accelerator accelerator = Accelerator::tcg;
  unsigned cpus = 2;
  unsigned memory_mb = 1024;
  unsigned tsc_khz = 0;
  std::string processor = {};               ///< host_processor() under KVM, where the guest sees the host's
  JailChoice jail = JailChoice::automatic;  ///< not part of the key

  /// 32 hexadecimal digits over all of it and the format of templates.
  std::string key() const;
  /// The command of a machine of this shape, memory and disk not filled in.
  QemuCommand command() const;
};

struct Template {
  std::filesystem::path folder = {};
  /// SHA-256 of its template.json, to tell it from one that was built in its place.
  std::string record = {};
  std::filesystem::path memory() const { return folder / "memory"; }
  std::filesystem::path state() const { return folder / "state"; }
  std::filesystem::path kernel() const { return folder / "kernel"; }
  std::filesystem::path initramfs() const { return folder / "empty"; }
};

struct TemplateProgress {
  std::function<void()> on_build = {};  ///< before it is built here
  std::function<void()> on_wait = {};   ///< before waiting for another process that builds it
  Deadline deadline = Deadline::never();
  std::optional<CancellationToken> cancel = std::nullopt;
};

/// A folder of templates. Thread-safe, also between processes.
class TemplateStore {
 public:
  explicit TemplateStore(std::filesystem::path folder) : folder_(std::move(folder)) {}

  /// The template of a shape when it is there and undamaged.
  std::optional<Template> find(const TemplateShape& shape) const;
  /// find(), else builds it: once, however many processes ask. Throws Error HYPERVISOR_UNAVAILABLE,
  /// GUEST_LOST, GUEST_PROTOCOL, TIMEOUT, CANCELLED, STORAGE_FULL.
  Template get(const TemplateShape& shape, const TemplateProgress& progress) const;
  /// Takes away a template that did not start a machine, unless it has been replaced since or is being built
  /// anew. A failure is logged only: the next get() looks at what is there.
  void discard(const TemplateShape& shape, const Template& used) const;
  /// Folders of all templates, whole ones and others.
  std::vector<std::filesystem::path> all() const;
  /// Deletes one. A machine that runs from it has the files open and goes on. Throws Error CONFLICT while it
  /// is being built.
  void remove(const std::filesystem::path& folder) const;
  /// Deletes what dead builders left and what is damaged, and names it.
  std::vector<std::string> repair() const;

 private:
  /// Deletes what dead builders left, and templates that nobody has used for two weeks.
  void sweep() const;
  Template build(const TemplateShape& shape, const TemplateProgress& progress) const;

  std::filesystem::path folder_;
};

}  // namespace holt::machine
