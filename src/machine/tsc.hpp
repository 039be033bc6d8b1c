// The frequency of the host's time-stamp counter, which under TCG is the guest's too (tsc_early_khz of the
// kernel).
#pragma once

#include <filesystem>

namespace holt::machine {

/// Measures over 60 ms against CLOCK_MONOTONIC; repeatable to about 1 kHz. 0 where there is no such counter.
unsigned measure_tsc_khz();

/// The frequency this host is known by: the remembered one while a measurement of this boot of the host
/// agrees with it to 20 parts in a million, so that the jitter of measuring makes no second template.
/// Measures once a host boot.
unsigned stable_tsc_khz(const std::filesystem::path& cache);

/// Whether two measurements are the same frequency.
bool same_tsc_frequency(unsigned a, unsigned b);

}  // namespace holt::machine
