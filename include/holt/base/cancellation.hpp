// Cancellation that any thread may ask for and that blocking calls, coroutines and callbacks can wait for.
//
//   holt::CancellationToken token;
//   std::thread t([&] { machine.exec({"sleep", "60"}, {.cancel = token}); });   // throws Error CANCELLED
//   token.cancel();
//
// Depends on base/fd.hpp only.
#pragma once

#include <functional>
#include <memory>

namespace holt {

/// A handle on shared state; copies are the same token. cancel() may be called from any thread (not from a
/// signal handler), any number of times, also before anybody waits. Thread-safe.
class CancellationToken {
 public:
  CancellationToken();

  /// Asks for cancellation. Callbacks run on the calling thread, once.
  void cancel() const;
  bool cancelled() const;

  /// A descriptor that polls readable from the moment of cancellation on. Lives as long as any copy of the
  /// token.
  int fd() const;

  /// Runs `callback` at cancellation, at once when that has been. The registration's end waits for a callback
  /// that is running on another thread and takes a waiting one back.
  class Registration;
  [[nodiscard]] Registration on_cancel(std::function<void()> callback) const;

  /// Throws Error CANCELLED when cancelled.
  void throw_if_cancelled() const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

class CancellationToken::Registration {
 public:
  Registration() = default;
  Registration(Registration&&) noexcept;
  Registration& operator=(Registration&&) noexcept;
  ~Registration();

 private:
  friend class CancellationToken;
  std::weak_ptr<State> state_;
  unsigned long id_ = 0;
};

}  // namespace holt
