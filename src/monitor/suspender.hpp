// Writes a running machine to files and ends its VMM; brings it back to life if that fails.
//
// RAM goes through a second QEMU, a relay that never runs: it maps a new sparse file shared and takes the
// whole state of the first, then writes the device state alone. So a suspended machine has the two files of a
// template, and its resume costs what a restore costs, however much memory was in use.
#pragma once

#include "holt/base/deadline.hpp"
#include "machine/launch.hpp"
#include "machine/record.hpp"
#include "machine/suspension.hpp"
#include "machine/vmm.hpp"

#include <functional>

namespace holt::monitor {

/// Throws Error STORAGE_FULL when the memory of this VMM would not find room in the folder.
void check_room(const machine::MachineFolder& folder, machine::Vmm& vmm);

/// Blocking; may be tried again after a failure.
class Suspender {
 public:
  /// `drain` takes what the guest has sent and is called whenever more can have come.
  Suspender(machine::Vmm& vmm, const machine::Launch& launch, const machine::MachineFolder& folder,
            std::function<void()> drain)
      : vmm_(vmm), launch_(launch), folder_(folder), drain_(std::move(drain)) {}

  /// Stops the guest and writes both files. On failure nothing of them is left and the guest is stopped.
  /// Throws Error STORAGE_FULL, HYPERVISOR_UNAVAILABLE, TIMEOUT.
  machine::Suspension write_files(Deadline deadline);

 private:
  void stop_guest(Deadline deadline);
  void copy_through_relay(const machine::Template& files, Deadline deadline);
  machine::Vmm start_relay(const machine::Template& files) const;

  machine::Vmm& vmm_;
  const machine::Launch& launch_;
  const machine::MachineFolder& folder_;
  std::function<void()> drain_;
};

}  // namespace holt::monitor
