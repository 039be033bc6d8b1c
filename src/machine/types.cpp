#include "holt/machine/types.hpp"

#include <array>
#include <utility>

namespace holt {
namespace {

constexpr std::array<std::pair<MachineState, std::string_view>, 8> k_states{{
    {MachineState::created, "created"},
    {MachineState::starting, "starting"},
    {MachineState::running, "running"},
    {MachineState::paused, "paused"},
    {MachineState::suspended, "suspended"},
    {MachineState::stopping, "stopping"},
    {MachineState::stopped, "stopped"},
    {MachineState::failed, "failed"},
}};

}  // namespace

std::string_view to_string(MachineState state) {
  for (const auto& [known, word] : k_states) {
    if (known == state) return word;
  }
  return "failed";
}

std::optional<MachineState> machine_state_from(std::string_view word) {
  for (const auto& [state, known] : k_states) {
    if (known == word) return state;
  }
  return std::nullopt;
}

std::string_view to_string(Accelerator accelerator) {
  return accelerator == Accelerator::kvm ? "kvm" : "tcg";
}

std::string_view isolation_of(Accelerator accelerator) {
  return accelerator == Accelerator::kvm ? "hardware" : "none";
}

std::string_view to_string(BootKind kind) {
  switch (kind) {
    case BootKind::restore:
      return "restore";
    case BootKind::cold:
      return "cold";
    case BootKind::resume:
      return "resume";
  }
  return "cold";
}

std::string_view to_string(NetworkMode mode) {
  switch (mode) {
    case NetworkMode::none:
      return "none";
    case NetworkMode::open:
      return "open";
    case NetworkMode::allow_list:
      return "allowlist";
  }
  return "none";
}

std::string_view to_string(FileType type) {
  switch (type) {
    case FileType::regular:
      return "file";
    case FileType::directory:
      return "directory";
    case FileType::symlink:
      return "symlink";
    case FileType::fifo:
      return "fifo";
    case FileType::socket:
      return "socket";
    case FileType::block_device:
      return "block device";
    case FileType::char_device:
      return "character device";
    case FileType::unknown:
      return "unknown";
  }
  return "unknown";
}

}  // namespace holt
