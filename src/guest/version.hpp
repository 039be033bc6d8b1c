#pragma once

#include <string_view>

namespace holt::guest {

inline constexpr std::string_view k_program = "holt-guest " HOLT_VERSION;

}  // namespace holt::guest
