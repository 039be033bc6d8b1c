// From the initramfs to the machine's own disk.
#pragma once

#include "guest/outcome.hpp"

#include <cstdint>
#include <string>

namespace holt::guest {

struct RootResult {
  std::uint64_t bytes = 0;  ///< size of the file system
  bool grown = false;
};

/// Waits until the device has at least `size` bytes (a restore announces the machine's own disk by an
/// interrupt), mounts its ext4, grows it when the device is larger, moves the kernel file systems over and
/// makes it "/".
Outcome<RootResult> enter_root(const std::string& device, std::uint64_t size);

/// Waits until the device has at least `size` bytes and makes the ext4 on it, which is "/", as large as it.
Outcome<RootResult> grow_root(const std::string& device, std::uint64_t size);

}  // namespace holt::guest
