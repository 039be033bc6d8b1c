// A QEMU process and the three sockets that lead into it.
#pragma once

#include "holt/base/fd.hpp"
#include "holt/base/process.hpp"
#include "machine/jail.hpp"
#include "machine/qemu_command.hpp"
#include "machine/qmp.hpp"

namespace holt::machine {

/// Owns the process: it dies with this object, and with the thread that started it. Movable.
class Vmm {
 public:
  /// Starts QEMU in its jail; nothing has been exchanged with it yet. Throws Error HYPERVISOR_UNAVAILABLE
  /// when it cannot be started, NOT_SUPPORTED when the command requires the whole jail and a part is missing.
  static Vmm start(const QemuCommand& command);

  Process& process() { return jailed_.process; }
  /// What of the jail holds.
  const JailReport& jail() const { return jailed_.report; }
  QmpClient& qmp() { return qmp_; }
  /// The guest program's port.
  Fd& agent() { return agent_; }
  /// The guest's serial console and QEMU's own messages; must be read, or the guest stalls.
  Fd& console() { return console_; }

  /// Boots the template's state into a QEMU that was started to wait for it, gives the guest its disk size
  /// and lets it run. `disk_bytes` 0: the placeholder disk.
  void load_state(int state_fd, std::uint64_t disk_bytes, Deadline deadline);
  /// Stops the guest and writes its device state to `state_fd`; RAM stays in the template's memory file.
  void save_state(int state_fd, Deadline deadline);
  /// Sends all of a stopped guest's state, RAM too, into `stream_fd`.
  void send_whole_state(int stream_fd, Deadline deadline);
  /// Takes what another QEMU sends by send_whole_state(); begins at once and returns. await_loaded() waits.
  void begin_receiving(int stream_fd, Deadline deadline);
  void await_loaded(Deadline deadline);
  /// Loads a state like load_state() and leaves the guest stopped.
  void load_stopped(int state_fd, std::uint64_t disk_bytes, Deadline deadline);
  /// Gives the guest's disk a size, bytes; it is told at once.
  void resize_disk(std::uint64_t disk_bytes, Deadline deadline);
  /// Lets the guest go on.
  void cont(Deadline deadline);
  /// Asks QEMU to end and waits; SIGKILL when it does not within `grace`. Returns how it ended, nothing when
  /// even that did not help in `grace`.
  std::optional<ExitStatus> quit(Duration grace);

 private:
  Vmm(Jailed jailed, QmpClient qmp, Fd agent, Fd console)
      : jailed_(std::move(jailed)),
        qmp_(std::move(qmp)),
        agent_(std::move(agent)),
        console_(std::move(console)) {}

  void await_migrated(Deadline deadline);

  Jailed jailed_;
  QmpClient qmp_;
  Fd agent_;
  Fd console_;
};

}  // namespace holt::machine
