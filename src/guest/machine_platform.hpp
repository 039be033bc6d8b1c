// PID 1 of a machine: becomes what the host says, in two lives of the program.
#pragma once

#include "guest/channel.hpp"
#include "guest/server.hpp"

#include <string>

namespace holt::guest {

/// What goes from the first life of the program to the second, through a sealed memory file.
struct CarriedState {
  std::uint32_t next_sequence = 0;
  std::uint32_t identity_stream = 0;
  std::string identity;         ///< the encoded request
  std::string unhandled;        ///< bytes that arrived behind it
  std::int64_t started_ns = 0;  ///< monotonic clock when the request arrived
};

/// Reads the state; the descriptor is closed.
Outcome<CarriedState> read_carried_state(int fd);

class MachinePlatform : public Platform {
 public:
  explicit MachinePlatform(Channel& channel) : channel_(channel) {}

  /// Reseeds the kernel, sets the clock, and executes the program anew: its addresses, canaries and hash
  /// seeds are then those of this machine alone. Comes back only with a failure.
  Outcome<protocol::IdentityReply> become(const protocol::IdentityRequest& request,
                                          std::uint32_t stream) override;

  /// The second half, in the new life: disk, names, network.
  static Outcome<protocol::IdentityReply> complete(const protocol::IdentityRequest& request,
                                                   std::int64_t started_ns);

  Outcome<> set_clock(std::int64_t wall_clock_ns) override;
  Outcome<> renew(const protocol::RenewRequest& request) override;
  bool may_freeze() const override { return true; }

 private:
  Channel& channel_;
};

}  // namespace holt::guest
