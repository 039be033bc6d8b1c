#include "harness/keyed_lock.hpp"

#include "holt/base/error.hpp"

#include <chrono>
#include <deque>

#include <boost/asio.hpp>

namespace holt {
namespace asio = boost::asio;

/// A coroutine that waits: its timer fires when the turn is given.
struct KeyedLocks::Waiter {
  explicit Waiter(const asio::any_io_executor& executor)
      : timer(executor, asio::steady_timer::time_point::max()) {}
  asio::steady_timer timer;
  bool granted = false;  // guarded by State::mutex
};

struct KeyedLocks::State {
  std::mutex mutex;
  // A key is here while somebody has its turn.
  std::map<std::string, std::deque<std::shared_ptr<Waiter>>> keys;

  void release(const std::string& key) {
    std::lock_guard lock(mutex);
    auto& waiters = keys[key];
    if (waiters.empty()) {
      keys.erase(key);
      return;
    }
    auto next = waiters.front();
    waiters.pop_front();
    next->granted = true;
    asio::post(next->timer.get_executor(),
               [next] { next->timer.expires_at(asio::steady_timer::time_point::min()); });
  }

  /// Takes a waiter that gives up out of the queue, or passes its turn on when it has one already.
  void withdraw(const std::string& key, const std::shared_ptr<Waiter>& waiter) {
    {
      std::lock_guard lock(mutex);
      if (!waiter->granted) {
        std::erase(keys[key], waiter);
        return;
      }
    }
    release(key);
  }
};

KeyedLocks::KeyedLocks() : state_(std::make_shared<State>()) {}
KeyedLocks::~KeyedLocks() = default;

/// A place in the queue, given up unless it was used.
struct KeyedLocks::Ticket {
  std::shared_ptr<State> state;
  std::string key;
  std::shared_ptr<Waiter> waiter;
  bool used = false;
  ~Ticket() {
    if (!used) state->withdraw(key, waiter);
  }
};

Task<KeyedLocks::Turn> KeyedLocks::lock(std::string key) {
  auto state = state_;
  auto executor = co_await asio::this_coro::executor;
  std::shared_ptr<Waiter> waiter;
  {
    std::lock_guard lock(state->mutex);
    auto [entry, is_new] = state->keys.try_emplace(key);
    if (is_new) co_return Turn(state, key);
    waiter = std::make_shared<Waiter>(executor);
    entry->second.push_back(waiter);
  }
  Ticket ticket{state, key, waiter};
  for (;;) {
    boost::system::error_code error;
    co_await waiter->timer.async_wait(asio::redirect_error(asio::use_awaitable, error));
    auto cancellation = co_await asio::this_coro::cancellation_state;
    if (cancellation.cancelled() != asio::cancellation_type::none) {
      throw Error(ErrorCode::cancelled, "The operation was cancelled");
    }
    std::lock_guard lock(state->mutex);
    if (waiter->granted) break;
  }
  ticket.used = true;
  co_return Turn(state, key);
}

KeyedLocks::Turn::~Turn() {
  if (state_) state_->release(key_);
}

}  // namespace holt
