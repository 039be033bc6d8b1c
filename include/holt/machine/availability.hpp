// Whether this host can run machines, and how. Nothing here boots a machine except probe_accelerator().
#pragma once

#include "holt/base/error.hpp"
#include "holt/machine/host_config.hpp"
#include "holt/machine/types.hpp"

#include <optional>
#include <string>

namespace holt {

/// The answer of local_availability().
struct Availability {
  bool available = false;
  std::optional<ErrorCode> code =
      std::nullopt;  ///< UNSUPPORTED_PLATFORM, RUNTIME_NOT_INSTALLED, KVM_UNAVAILABLE or
                     ///< HYPERVISOR_UNAVAILABLE when not available
  std::optional<std::string> reason = std::nullopt;
};

/// The first obstacle to running machines here, if any. Never boots, never throws, takes milliseconds: it
/// reads the remembered verdict of the last real boot. KVM that is missing is an obstacle only under
/// require_kvm.
Availability local_availability() noexcept;
Availability local_availability(const HostConfig& host) noexcept;

/// What is known of KVM on this host.
struct AcceleratorVerdict {
  Accelerator accelerator = Accelerator::tcg;  ///< the best that works
  std::string detail = {};                     ///< why not KVM, or how it was proved
};

/// The remembered verdict; nothing when no boot has been tried with this kernel, VMM and /dev/kvm.
std::optional<AcceleratorVerdict> cached_accelerator(const HostConfig& host);
/// Lets the next probe_accelerator() try again what has failed before. False when nothing was remembered
/// against KVM. Throws Error HYPERVISOR_UNAVAILABLE.
bool forget_accelerator(const HostConfig& host);

/// The remembered verdict, else that of a real boot of a tiny kernel under KVM within 10 s, which it
/// remembers by kernel release, VMM and identity of /dev/kvm. Throws Error HYPERVISOR_UNAVAILABLE when there
/// is no VMM.
AcceleratorVerdict probe_accelerator(const HostConfig& host);

/// The accelerator that machines get: probe_accelerator() under the host's choice. Throws Error
/// KVM_UNAVAILABLE under require_kvm where KVM does not work, at once when that is known.
Accelerator choose_accelerator(const HostConfig& host);

}  // namespace holt
