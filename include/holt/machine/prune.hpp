// Giving back what nobody needs any more: ended machines, images without machines, templates out of use.
//
//   auto found = holt::prune({.kinds = {PruneKind::machines}, .older_than = 24h, .mode =
//   PruneMode::report}); for (const auto& item : found.items) std::cout << item.kind << ' ' << item.name <<
//   '\n';
//
// What crashed programs left half-made is cleared away by every call that makes or lists machines; this takes
// what is whole. Depends on base/ only.
#pragma once

#include "holt/machine/host_config.hpp"
#include "holt/machine/types.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace holt {

enum class PruneKind {
  machines,   ///< that have ended: created, stopped or failed. Suspended ones stay
  images,     ///< that no machine stands on, and layers that no image needs
  templates,  ///< a machine that needs one builds it again
};
std::string_view to_string(PruneKind kind);

enum class PruneMode { remove, report };

struct PruneOptions {
  std::vector<PruneKind> kinds = {};  ///< in this order: images become free when their machines go
  Duration older_than{};              ///< unused for at least so long
  PruneMode mode = PruneMode::remove;
  CallOptions call = {};  ///< `cancel` stops between two items
};

/// One thing that was removed, or would be.
struct PrunedItem {
  PruneKind kind = PruneKind::machines;
  std::string name = {};
  std::uint64_t bytes = 0;  ///< blocks on the host's disk
};
struct PruneResult {
  std::vector<PrunedItem> items = {};
  std::vector<std::string> problems = {};  ///< what could not be removed, and why
  std::uint64_t bytes() const {
    std::uint64_t sum = 0;
    for (const auto& item : items) sum += item.bytes;
    return sum;
  }
};

/// Throws Error CANCELLED; what cannot be removed is a problem of the result. Thread-safe; safe beside any
/// other use of the same folders.
PruneResult prune(const PruneOptions& options, const HostConfig& host);

}  // namespace holt
