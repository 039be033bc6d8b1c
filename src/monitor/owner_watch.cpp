#include "monitor/owner_watch.hpp"

#include <array>
#include <csignal>
#include <poll.h>
#include <tuple>

namespace holt::monitor {

OwnerWatch::OwnerWatch(int control) {
  if (control < 0) return;
  std::tie(stop_, stop_writer_) = make_pipe();
  thread_ = std::thread([this, control] { watch(control); });
}

OwnerWatch::~OwnerWatch() {
  stop_writer_.reset();
  if (thread_.joinable()) thread_.join();
}

void OwnerWatch::kill_at_end(pid_t vmm) {
  vmm_ = vmm;
  // The child is not reaped before this object goes, so the pid is its own.
  if (gone_) ::kill(vmm, SIGKILL);
}

void OwnerWatch::watch(int control) {
  std::array<pollfd, 2> fds{{{control, POLLRDHUP, 0}, {stop_.get(), POLLIN, 0}}};
  while (::poll(fds.data(), fds.size(), -1) < 0) {
  }
  if (fds[1].revents != 0) return;
  gone_ = true;
  if (pid_t vmm = vmm_; vmm > 0) ::kill(vmm, SIGKILL);
}

}  // namespace holt::monitor
