// What tests ask again and again: how a call fails, and whether something comes true.
#pragma once

#include "holt/base/deadline.hpp"
#include "holt/base/error.hpp"

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <thread>
#include <utility>

namespace holt::test {

/// For what takes a moment, on a host that has others to serve as well.
inline constexpr Duration k_patience = std::chrono::seconds(60);
inline Deadline patient() {
  return Deadline::after(k_patience);
}

/// Waits for a condition that nothing announces. False at the deadline.
inline bool eventually(const std::function<bool()>& holds, Duration limit = k_patience) {
  auto deadline = Deadline::after(limit);
  while (!holds()) {
    if (deadline.passed()) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
}

/// The code of the Error that `action` throws; nothing when it throws none.
inline std::optional<ErrorCode> code_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& e) {
    return e.code();
  }
  return std::nullopt;
}

/// Code, sentence and hint of the Error that `action` throws.
inline std::pair<ErrorCode, std::string> failure(const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& e) {
    return {e.code(), std::string(e.what()) + " " + e.hint()};
  }
  return {ErrorCode::internal, "nothing was thrown"};
}

}  // namespace holt::test
