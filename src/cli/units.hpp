// Sizes and durations as people type them.
#pragma once

#include "holt/base/deadline.hpp"

#include <cstdint>
#include <expected>
#include <string>
#include <string_view>

namespace holt::cli {

inline constexpr std::uint64_t k_mib = std::uint64_t{1} << 20;
inline constexpr std::uint64_t k_gib = std::uint64_t{1} << 30;

/// "512M", "1.5G", "2GiB", "64KB" (all powers of 1024) to bytes; a bare number counts in `unit` bytes.
/// The error is half a sentence.
std::expected<std::uint64_t, std::string> parse_size(std::string_view text, std::uint64_t unit);

/// "500ms", "30s", "5m", "1h30m", "2d", or seconds ("1.5"). Above zero, at most 100 years.
std::expected<Duration, std::string> parse_duration(std::string_view text);

/// For people: "1.5 GiB", "812 ms", "3.2 s".
std::string show_size(std::uint64_t bytes);
std::string show_duration(Duration duration);

}  // namespace holt::cli
