// Brings a machine up: restore, one retry, cold boot; and the handshake that gives it its identity.
#pragma once

#include "machine/console.hpp"
#include "machine/guest_link.hpp"
#include "machine/launch.hpp"
#include "machine/record.hpp"
#include "machine/suspension.hpp"
#include "machine/vmm.hpp"

#include <functional>
#include <memory>

namespace holt::monitor {

/// A machine that accepts commands.
struct StartedMachine {
  machine::Vmm vmm;
  machine::GuestLink link;
  std::unique_ptr<machine::ConsoleReader> console;
  BootKind boot_kind = BootKind::restore;
  Duration boot_time{};
  std::string generation;
  bool template_bad = false;               ///< it was booted cold because its template did not work
  machine::SuspendedChannel channel = {};  ///< what of it was there before: empty but for a resumed machine
};

/// Blocks for 30 s at most. `on_vmm` hears of each VMM that is started, before anything else happens with it.
/// Throws Error when no attempt led to a machine; no VMM is left then.
StartedMachine start_machine(const machine::Launch& launch, const machine::MachineRecord& record,
                             const machine::MachineFolder& folder, const std::function<void(pid_t)>& on_vmm);

/// Brings a suspended machine back. Up to the moment in which its guest runs a failure leaves it suspended.
/// Throws Error: STORAGE_ERROR (damaged), INVALID_STATE (of another QEMU), and as start_machine().
StartedMachine resume_machine(const machine::Launch& launch, const machine::MachineRecord& record,
                              const machine::MachineFolder& folder, const std::function<void(pid_t)>& on_vmm);

}  // namespace holt::monitor
