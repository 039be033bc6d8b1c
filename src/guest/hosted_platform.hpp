// The guest program as an ordinary process: for tests on a machine without machines.
#pragma once

#include "guest/server.hpp"

namespace holt::guest {

/// Changes nothing of the host: no clock, no name, no mount, no freeze.
class HostedPlatform : public Platform {
 public:
  Outcome<protocol::IdentityReply> become(const protocol::IdentityRequest& request,
                                          std::uint32_t stream) override;
  Outcome<> set_clock(std::int64_t wall_clock_ns) override;
  Outcome<> renew(const protocol::RenewRequest& request) override;
  bool may_freeze() const override { return false; }
};

}  // namespace holt::guest
