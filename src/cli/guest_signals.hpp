// Signals of holt handed to a command in a machine.
#pragma once

#include "cli/interrupts.hpp"
#include "holt/machine/exec.hpp"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>

namespace holt::cli {

/// Whether the command has a terminal that is to be as large as ours.
enum class GuestSize { own, follows_ours };

/// While it lives, signals go to the command. A second SIGINT within 2 s, a third one at all, and SIGTERM or
/// SIGHUP not heeded for 2 s kill it. Each signal arrives once.
class GuestSignals {
 public:
  GuestSignals(Interrupts& interrupts, ExecStream& stream, GuestSize size = GuestSize::own);
  ~GuestSignals();
  GuestSignals(const GuestSignals&) = delete;

  /// The signal after which the command was killed, if one was.
  std::optional<int> killed_by() const;

 private:
  void take(int signal_number);
  void resize();
  void kill(int signal_number);

  ExecStream* stream_;
  GuestSize size_;
  std::atomic<int> killed_by_ = 0;
  int interrupts_seen_ = 0;
  std::chrono::steady_clock::time_point last_interrupt_{};
  std::mutex mutex_;
  std::condition_variable_any wake_;
  std::jthread timer_;
  std::unique_ptr<Interrupts::Redirection> redirection_;
};

}  // namespace holt::cli
