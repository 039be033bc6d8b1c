// Signals: an interrupt of holt cancels what it is doing; while a command runs in a machine, signals go to
// it.
#pragma once

#include "holt/base/cancellation.hpp"
#include "holt/base/fd.hpp"

#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>

namespace holt::cli {

/// Takes SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1 and SIGUSR2 of the process over, ignores SIGPIPE and
/// SIGXFSZ (a write that fails says more). Made once, in main, before any other thread (the others inherit
/// the blocked signals). A receiver gets SIGWINCH too.
///
/// Without a receiver the first signal cancels token(); a second one, or a time in which the program did not
/// end (2.5 s where set_patience() says nothing else), ends the process with 128 + N at once (machines of its
/// own then end with their connection).
class Interrupts {
 public:
  Interrupts();
  ~Interrupts();
  Interrupts(const Interrupts&) = delete;

  /// Cancelled by the first signal that nobody received.
  const CancellationToken& token() const { return token_; }
  /// How long the program may take to end after the first signal. For verbs that have more to clean up.
  /// Of no effect after that signal. Thread-safe.
  void set_patience(std::chrono::milliseconds patience);
  /// What is called right before the process is ended although it has not wound up, with the watching
  /// thread's locks held: it must not wait for anything. Thread-safe.
  void set_last_words(std::function<void()> say);
  /// The signal that cancelled token().
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
  [[noreturn]] void end_process(int signal_number);
  std::chrono::milliseconds patience() const;

  CancellationToken token_;
  mutable std::mutex mutex_;
  std::optional<int> signal_;
  // A user who interrupts waits three seconds at most; the rest is for the exit itself.
  std::chrono::milliseconds patience_ = std::chrono::milliseconds(2500);
  std::function<void(int)> receiver_;
  std::function<void()> last_words_;
  Fd signals_;
  Fd end_read_;
  Fd end_write_;
  std::jthread thread_;
};

}  // namespace holt::cli
