// What is left of a machine that was suspended: RAM and device state as files, in the shape of a template, so
// that a resume is a restore.
//
// Layout of MachineFolder::suspended():
//   memory        RAM, sparse, mapped privately by the resumed machine
//   state         device state of QEMU
//   kernel, empty stand-ins as in a template
//   suspend.json  written last: with it the machine is suspended, without it nothing of this counts
#pragma once

#include "machine/record.hpp"
#include "machine/template.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace holt::machine {

inline constexpr const char* k_suspension_name = "suspend.json";

/// The channel as the guest left it.
struct SuspendedChannel {
  std::string generation = {};
  std::uint32_t next_stream = 1;
  std::uint32_t next_sequence = 0;                                ///< of frames to the guest
  std::optional<std::uint32_t> expected_sequence = std::nullopt;  ///< of frames from the guest
  std::string unparsed = {};                                      ///< the beginning of such a frame
  std::string unsent = {};  ///< frames for the guest that were kept back when it stopped
  struct Stream {
    std::uint32_t number = 0;
    bool started = false;
    std::uint32_t window = 0;  ///< bytes that the guest may send on it
    bool operator==(const Stream&) const = default;
  };
  std::vector<Stream> streams = {};  ///< that the guest has open
  bool operator==(const SuspendedChannel&) const = default;
};

/// Content of suspend.json.
struct Suspension {
  std::string vmm_version = {};  ///< only the same QEMU reads the state
  Accelerator accelerator = Accelerator::tcg;
  unsigned cpus = 0;
  unsigned memory_mb = 0;
  unsigned tsc_khz = 0;
  std::string processor = {};  ///< that of TemplateShape
  std::uint64_t disk_bytes = 0;
  std::string memory_digest = {};  ///< sampled_digest()
  std::string state_digest = {};   ///< SHA-256
  WallTime at{};
  SuspendedChannel channel = {};
};

/// Replaces suspend.json, durably. Throws Error.
void write_suspension(const MachineFolder& folder, const Suspension& suspension);
/// Throws Error: INVALID_STATE when it is damaged, or of another version; NOT_FOUND.
Suspension read_suspension(const MachineFolder& folder);
/// Throws Error STORAGE_ERROR when memory or state are not what was written.
void check_suspension(const MachineFolder& folder, const Suspension& suspension);
/// From now on the machine is not suspended: its memory goes on elsewhere, or is given up. Throws Error, and
/// it is suspended still.
void end_suspension(const MachineFolder& folder);
/// Deletes memory and state; a machine that maps them goes on. Failures are logged only.
void delete_suspended_files(const MachineFolder& folder) noexcept;

}  // namespace holt::machine
