#include "cli/guest_signals.hpp"

#include "cli/host_terminal.hpp"
#include "holt/base/error.hpp"
#include "holt/base/log.hpp"

#include <csignal>

namespace holt::cli {
namespace {

constexpr auto k_patience = std::chrono::seconds(2);

}  // namespace

GuestSignals::GuestSignals(Interrupts& interrupts, ExecStream& stream, GuestSize size)
    : stream_(&stream),
      size_(size),
      redirection_(interrupts.redirect([this](int number) { take(number); })) {}

GuestSignals::~GuestSignals() {
  redirection_.reset();
}

std::optional<int> GuestSignals::killed_by() const {
  int number = killed_by_;
  return number == 0 ? std::nullopt : std::optional<int>(number);
}

void GuestSignals::resize() {
  try {
    if (size_ == GuestSize::follows_ours) stream_->resize(host_terminal_size());
  } catch (const Error& error) {
    // As with a signal that does not arrive.
    logger("cli")->debug("the terminal's size was not delivered: {}", error.what());
  }
}

void GuestSignals::kill(int signal_number) {
  int none = 0;
  killed_by_.compare_exchange_strong(none, signal_number);
  stream_->kill();
}

void GuestSignals::take(int signal_number) {
  if (signal_number == SIGWINCH) return resize();
  auto now = std::chrono::steady_clock::now();
  if (signal_number == SIGINT) {
    bool again = interrupts_seen_ > 0 && now - last_interrupt_ < k_patience;
    last_interrupt_ = now;
    if (++interrupts_seen_ >= 3 || again) return kill(signal_number);
  }
  bool final = signal_number == SIGTERM || signal_number == SIGHUP;
  if (final && timer_.joinable()) return kill(signal_number);
  try {
    stream_->signal(signal_number);
  } catch (const Error& error) {
    // The stream's reader reports a lost machine; this is only its echo.
    logger("cli")->debug("signal {} was not delivered: {}", signal_number, error.what());
  }
  if (!final) return;
  timer_ = std::jthread([this, signal_number](const std::stop_token& stop) {
    std::unique_lock lock(mutex_);
    wake_.wait_for(lock, stop, k_patience, [] { return false; });
    if (!stop.stop_requested()) kill(signal_number);
  });
}

}  // namespace holt::cli
