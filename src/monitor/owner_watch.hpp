// Ends a start whose owner has gone, while the monitor itself waits for QEMU and guest.
#pragma once

#include "holt/base/fd.hpp"

#include <atomic>
#include <sys/types.h>
#include <thread>

namespace holt::monitor {

/// Watches the owner's socket on a thread; at its end kills the VMM that is starting, so that the start fails
/// at once.
class OwnerWatch {
 public:
  /// -1: nobody owns the machine, nothing is watched.
  explicit OwnerWatch(int control);
  ~OwnerWatch();
  OwnerWatch(const OwnerWatch&) = delete;
  OwnerWatch& operator=(const OwnerWatch&) = delete;

  void kill_at_end(pid_t vmm);

 private:
  void watch(int control);

  Fd stop_;
  Fd stop_writer_;
  std::atomic<pid_t> vmm_ = 0;
  std::atomic<bool> gone_ = false;
  std::thread thread_;
};

}  // namespace holt::monitor
