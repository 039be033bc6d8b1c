// Numbers of our own state files, which a damaged disk or a hand may have changed.
#pragma once

#include "holt/base/json.hpp"

#include <concepts>
#include <stdexcept>
#include <string>

namespace holt::machine {

/// The integer at `name`. Throws std::runtime_error where it is missing, is none, or does not fit T.
template <std::integral T>
T integer_member(const Json& object, const char* name) {
  if (auto number = json_integer<T>(object.at(name))) return *number;
  throw std::runtime_error(std::string(name) + " is no number of its range");
}

}  // namespace holt::machine
