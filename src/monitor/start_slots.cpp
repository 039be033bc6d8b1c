#include "monitor/start_slots.hpp"

#include "holt/base/error.hpp"
#include "holt/base/log.hpp"

#include <algorithm>
#include <chrono>
#include <thread>

#include <fmt/format.h>

namespace holt::monitor {

using namespace std::chrono_literals;

std::optional<FileLock> take_start_slot(const std::filesystem::path& folder) {
  const unsigned slots = std::clamp(std::thread::hardware_concurrency() * 2, 2U, 256U);
  auto deadline = Deadline::after(20s);
  try {
    make_private_directory(folder);
    while (!deadline.passed()) {
      for (unsigned slot = 0; slot < slots; ++slot) {
        if (auto lock = FileLock::try_acquire(folder / fmt::format("{}", slot))) return lock;
      }
      std::this_thread::sleep_for(5ms);
    }
  } catch (const Error& e) {
    // Slots are an optimisation: a full disk must not keep machines from starting.
    logger("monitor")->debug("{}", e.what());
  }
  return std::nullopt;
}

}  // namespace holt::monitor
