// What makes a restored clone a machine of its own.
#pragma once

#include "guest/outcome.hpp"

#include <cstdint>
#include <string>
#include <string_view>

namespace holt::guest {

/// Credits the bytes in full and makes the kernel's generator start from them at once. Needs no file below
/// /dev but random.
Outcome<> reseed_kernel(std::string_view entropy);

Outcome<> set_wall_clock(std::int64_t nanoseconds);

Outcome<> set_hostname(const std::string& hostname);

/// A boot id of this machine over the one the template may have drawn already.
Outcome<> renew_boot_id();

/// Writes /etc/machine-id if the image has none, and a minimal /etc/hosts if that is missing.
void complete_etc(const std::string& machine_id, const std::string& hostname);

/// Brings the loopback interface up, and the machine's own where there is one.
Outcome<> set_up_network(const protocol::IdentityRequest& request);

}  // namespace holt::guest
