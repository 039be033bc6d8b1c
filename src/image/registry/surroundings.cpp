#include "image/registry/surroundings.hpp"

#include <cstdlib>
#include <poll.h>
#include <random>
#include <thread>

namespace holt::image {
namespace {

std::optional<std::string> variable(const std::string& name) {
  const char* value = std::getenv(name.c_str());
  return value != nullptr ? std::optional<std::string>(value) : std::nullopt;
}

void wait_or_cancel(Duration duration, const std::optional<CancellationToken>& cancel) {
  if (!cancel) return std::this_thread::sleep_for(duration);
  auto deadline = Deadline::after(duration);
  pollfd cancelled{.fd = cancel->fd(), .events = POLLIN, .revents = 0};
  while (!deadline.passed() && !cancel->cancelled()) ::poll(&cancelled, 1, deadline.poll_timeout());
  cancel->throw_if_cancelled();
}

double random_chance() {
  std::random_device device;
  return std::uniform_real_distribution<double>(0, 1)(device);
}

}  // namespace

Surroundings Surroundings::of_process() {
  return {.environment = variable,
          .wait = wait_or_cancel,
          .chance = random_chance,
          .now = wall_now,
          .address_kind = [](const sockaddr& address) { return image::address_kind(address); }};
}

}  // namespace holt::image
