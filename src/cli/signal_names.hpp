// Signals by name, as people and images write them.
#pragma once

#include <optional>
#include <string_view>

namespace holt::cli {

/// "TERM", "SIGTERM", "RTMIN+3", "SIGRTMAX-1" or "15" to a number of 1 to 64; nothing for anything else.
/// Real-time signals are counted as glibc does, from 34 to 64. Source: signal(7).
std::optional<int> signal_number(std::string_view text);

}  // namespace holt::cli
