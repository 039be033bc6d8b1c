#include "machine/tsc.hpp"

#include "holt/base/deadline.hpp"
#include "holt/base/files.hpp"
#include "machine/host_facts.hpp"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <string>
#include <thread>
#include <time.h>
#include <x86intrin.h>

#include <fmt/format.h>

namespace holt::machine {
namespace {

struct Sample {
  double seconds = 0;
  std::uint64_t ticks = 0;
};

double monotonic_seconds() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) / 1e9;
}

// The tightest of 50 pairs of clock readings around the counter: the others were interrupted.
Sample tightest_sample() {
  Sample best;
  double width = 1;
  for (int i = 0; i < 50; i++) {
    double before = monotonic_seconds();
    std::uint64_t ticks = __rdtsc();
    double after = monotonic_seconds();
    if (after - before < width) {
      width = after - before;
      best = {(before + after) / 2, ticks};
    }
  }
  return best;
}

}  // namespace

unsigned measure_tsc_khz() {
  Sample first = tightest_sample();
  std::this_thread::sleep_for(std::chrono::milliseconds(60));
  Sample last = tightest_sample();
  double khz = static_cast<double>(last.ticks - first.ticks) / (last.seconds - first.seconds) / 1e3;
  return khz > 0 && khz < 1e8 ? static_cast<unsigned>(std::lround(khz)) : 0;
}

bool same_tsc_frequency(unsigned a, unsigned b) {
  // 20 ppm is ten times the jitter of a measurement, and 2 s a day in the guest's clock.
  constexpr double k_tolerance = 20e-6;
  return std::abs(static_cast<double>(a) - static_cast<double>(b)) <= k_tolerance * std::max(a, b);
}

unsigned stable_tsc_khz(const std::filesystem::path& cache) {
  auto file = cache / "tsc-khz";
  auto boot = host_boot_id();
  // "KHZ BOOT_ID"
  auto remembered = [&]() -> std::pair<unsigned, std::string> {
    auto text = read_file_if_exists(file, 256).value_or("");
    unsigned khz = 0;
    auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), khz);
    if (error != std::errc{} || *end != ' ') return {0, ""};
    return {khz, text.substr(static_cast<std::size_t>(end + 1 - text.data()))};
  };
  if (auto [khz, of_boot] = remembered(); khz && of_boot == boot) return khz;

  make_private_directory(cache);
  auto lock = FileLock::acquire(cache / "tsc.lock", Deadline::after(std::chrono::seconds(5)));
  auto [khz, of_boot] = remembered();
  if (khz && of_boot == boot) return khz;
  unsigned measured = measure_tsc_khz();
  if (!khz || !same_tsc_frequency(khz, measured)) khz = measured;
  write_file_atomically(file, fmt::format("{} {}", khz, boot));
  return khz;
}

}  // namespace holt::machine
