// The real guest program as a process of this host, behind the real relay and the real client: everything of
// a machine but the VMM. Its files are the host's.
#pragma once

#include "holt/base/process.hpp"
#include "machine/fake_guest.hpp"

#include <optional>

namespace holt::test {

class HostedMachine {
 public:
  HostedMachine() {
    auto [ours, guests] = socket_pair();
    constexpr int k_guest_fd = 3;
    process_ = Process::start({.argv = {HOLT_GUEST_PROGRAM, "--serve", std::to_string(k_guest_fd)},
                               .fds = {{guests.get(), k_guest_fd}, {2, 2}},
                               .die_with_parent = true});
    machine::GuestLink link(std::move(ours));
    auto deadline = Deadline::after(20s);
    link.await_hello(deadline);
    link.greet(deadline);
    link.request(
        protocol::IdentityRequest{
            .generation = "test", .entropy = std::string(64, 'e'), .wall_clock_ns = 1, .hostname = "test"},
        deadline);
    relayed_.emplace(std::move(link).release());
  }

  const machine::MachineFolder& folder() const { return relayed_->folder(); }
  std::optional<ErrorCode> gone() const { return relayed_->gone(); }
  Process& process() { return process_; }

 private:
  Process process_;
  std::optional<RelayedMachine> relayed_;
};

}  // namespace holt::test
