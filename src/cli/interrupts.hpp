// Signals: an interrupt of holt cancels what it is doing; while a command runs in a machine, signals go to
// it.
#pragma once

#include "holt/base/cancellation.hpp"
#include "holt/base/fd.hpp"

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>

namespace holt::cli {

/// Takes SIGINT, SIGTERM, SIGHUP and SIGQUIT of the process over, ignores SIGPIPE. Made once, in main, before
/// any other thread (the others inherit the blocked signals).
///
/// Without a receiver the first signal cancels token(); a second one, or 2.5 s in which the program did not
/// end, ends the process with 128 + N at once (machines of its own then end with their connection).
class Interrupts {
 public:
  Interrupts();
  ~Interrupts();
  Interrupts(const Interrupts&) = delete;

  /// Cancelled by the first signal that nobody received.
  const CancellationToken& token() const { return token_; }
  /// That signal.
  std::optional<int> signal() const;

  /// While it lives, signals go to the receiver, on the watching thread, and cancel nothing.
  class Redirection {
   public:
    explicit Redirection(Interrupts& owner) : owner_(&owner) {}
    ~Redirection();
    Redirection(const Redirection&) = delete;

   private:
    Interrupts* owner_;
  };
  [[nodiscard]] std::unique_ptr<Redirection> redirect(std::function<void(int)> receiver);

 private:
  void watch();
  void take(int signal_number);

  CancellationToken token_;
  mutable std::mutex mutex_;
  std::optional<int> signal_;
  std::function<void(int)> receiver_;
  Fd signals_;
  Fd end_read_;
  Fd end_write_;
  std::jthread thread_;
};

}  // namespace holt::cli
