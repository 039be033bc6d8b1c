#include "cli/interrupts.hpp"

#include "holt/base/deadline.hpp"
#include "holt/base/error.hpp"

#include <cerrno>
#include <csignal>
#include <poll.h>
#include <sys/signalfd.h>
#include <unistd.h>

namespace holt::cli {
namespace {

sigset_t watched_signals() {
  sigset_t set;
  sigemptyset(&set);
  for (int number : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGWINCH}) sigaddset(&set, number);
  return set;
}

}  // namespace

Interrupts::Interrupts() {
  sigset_t set = watched_signals();
  ::pthread_sigmask(SIG_BLOCK, &set, nullptr);
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);
  signals_ = Fd(::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!signals_) throw system_error(errno, "Watch for signals");
  std::tie(end_read_, end_write_) = make_pipe();
  thread_ = std::jthread([this] { watch(); });
}

Interrupts::~Interrupts() {
  end_write_.reset();
}

void Interrupts::set_patience(std::chrono::milliseconds patience) {
  std::lock_guard lock(mutex_);
  patience_ = patience;
}

void Interrupts::set_last_words(std::function<void()> say) {
  std::lock_guard lock(mutex_);
  last_words_ = std::move(say);
}

std::chrono::milliseconds Interrupts::patience() const {
  std::lock_guard lock(mutex_);
  return patience_;
}

std::optional<int> Interrupts::signal() const {
  std::lock_guard lock(mutex_);
  return signal_;
}

void Interrupts::watch() {
  Deadline end = Deadline::never();
  while (true) {
    pollfd fds[2] = {{.fd = signals_.get(), .events = POLLIN, .revents = 0},
                     {.fd = end_read_.get(), .events = POLLIN, .revents = 0}};
    int ready = ::poll(fds, 2, end.poll_timeout());
    if (ready < 0 && errno != EINTR) return;
    if (ready > 0 && fds[1].revents != 0) return;
    signalfd_siginfo info{};
    while (ready > 0 && ::read(signals_.get(), &info, sizeof info) == sizeof info) {
      take(static_cast<int>(info.ssi_signo));
    }
    auto taken = signal();
    if (taken && !end.at()) end = Deadline::after(patience());
    if (taken && end.passed()) {
      std::lock_guard lock(mutex_);
      end_process(*taken);
    }
  }
}

void Interrupts::end_process(int signal_number) {
  if (last_words_) last_words_();
  ::_exit(128 + signal_number);
}

void Interrupts::take(int signal_number) {
  std::function<void(int)> receiver;
  {
    std::lock_guard lock(mutex_);
    receiver = receiver_;
    if (!receiver && signal_number == SIGWINCH) return;
    if (!receiver && signal_) end_process(signal_number);
    if (!receiver) signal_ = signal_number;
    // Under the lock, so that a receiver is never called after its redirection has ended.
    if (receiver) receiver(signal_number);
  }
  if (!receiver) token_.cancel();
}

std::unique_ptr<Interrupts::Redirection> Interrupts::redirect(std::function<void(int)> receiver) {
  std::lock_guard lock(mutex_);
  receiver_ = std::move(receiver);
  return std::make_unique<Redirection>(*this);
}

Interrupts::Redirection::~Redirection() {
  std::lock_guard lock(owner_->mutex_);
  owner_->receiver_ = nullptr;
}

}  // namespace holt::cli
