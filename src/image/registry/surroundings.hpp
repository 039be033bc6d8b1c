// What of the world around it a registry client uses. Tests bring their own.
#pragma once

#include "holt/base/cancellation.hpp"
#include "holt/base/deadline.hpp"
#include "holt/base/directories.hpp"
#include "holt/base/time.hpp"
#include "image/registry/address.hpp"

#include <functional>
#include <optional>

namespace holt::image {

struct Surroundings {
  /// A variable of this process's environment.
  Directories::Lookup environment;
  /// Waits; throws Error CANCELLED.
  std::function<void(Duration, const std::optional<CancellationToken>&)> wait;
  std::function<double()> chance;  ///< 0 to 1
  std::function<WallTime()> now;
  std::function<AddressKind(const sockaddr&)> address_kind;

  static Surroundings of_process();
};

}  // namespace holt::image
