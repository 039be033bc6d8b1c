// Turns between coroutines that work on the same thing, whatever executors they run on.
//
//   auto turn = co_await locks.lock(real_path);
#pragma once

#include "holt/base/task.hpp"

#include <map>
#include <memory>
#include <mutex>
#include <string>

namespace holt {

/// Locks by name. Thread-safe; must outlive no one: turns keep what they need.
class KeyedLocks {
 public:
  KeyedLocks();
  ~KeyedLocks();
  KeyedLocks(const KeyedLocks&) = delete;
  KeyedLocks& operator=(const KeyedLocks&) = delete;

  /// One turn; the next waiter's begins when it goes.
  class Turn;
  /// Waits for the turn of `key`, first come first served. Throws Error CANCELLED.
  Task<Turn> lock(std::string key);

 private:
  struct Waiter;
  struct Ticket;
  struct State;
  std::shared_ptr<State> state_;
};

class KeyedLocks::Turn {
 public:
  Turn(std::shared_ptr<State> state, std::string key) : state_(std::move(state)), key_(std::move(key)) {}
  Turn(Turn&&) noexcept = default;
  Turn& operator=(Turn&&) = delete;
  ~Turn();

 private:
  std::shared_ptr<State> state_;
  std::string key_;
};

}  // namespace holt
