#include "holt/base/cancellation.hpp"

#include "holt/base/error.hpp"
#include "holt/base/fd.hpp"
#include "holt/base/files.hpp"

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <map>
#include <mutex>
#include <sys/eventfd.h>
#include <thread>
#include <utility>

namespace holt {

struct CancellationToken::State {
  std::atomic<bool> cancelled = false;
  Fd event;
  std::mutex mutex;
  unsigned long next_id = 1;
  std::map<unsigned long, std::function<void()>> callbacks;
  // A callback runs under this lock, so that the end of its registration can wait for it; recursive, since a
  // callback may end its own registration.
  std::recursive_mutex running;
};

CancellationToken::CancellationToken() : state_(std::make_shared<State>()) {
  state_->event = Fd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!state_->event) throw system_error(errno, "make an event descriptor");
}

void CancellationToken::cancel() const {
  std::lock_guard running(state_->running);
  {
    std::lock_guard lock(state_->mutex);
    if (state_->cancelled.exchange(true)) return;
  }
  std::uint64_t one = 1;
  write_all(state_->event.get(), {reinterpret_cast<const char*>(&one), sizeof one});
  for (;;) {
    std::function<void()> callback;
    {
      std::lock_guard lock(state_->mutex);
      if (state_->callbacks.empty()) return;
      auto first = state_->callbacks.begin();
      callback = std::move(first->second);
      state_->callbacks.erase(first);
    }
    callback();
  }
}

bool CancellationToken::cancelled() const {
  return state_->cancelled;
}

int CancellationToken::fd() const {
  return state_->event.get();
}

void CancellationToken::throw_if_cancelled() const {
  if (cancelled()) throw Error(ErrorCode::cancelled, "The operation was cancelled");
}

CancellationToken::Registration CancellationToken::on_cancel(std::function<void()> callback) const {
  Registration registration;
  {
    std::lock_guard lock(state_->mutex);
    if (!state_->cancelled) {
      registration.state_ = state_;
      registration.id_ = state_->next_id++;
      state_->callbacks.emplace(registration.id_, std::move(callback));
      return registration;
    }
  }
  callback();
  return registration;
}

CancellationToken::Registration::Registration(Registration&& other) noexcept
    : state_(std::move(other.state_)), id_(std::exchange(other.id_, 0)) {}

CancellationToken::Registration& CancellationToken::Registration::operator=(Registration&& other) noexcept {
  if (this != &other) {
    Registration old(std::move(*this));
    state_ = std::move(other.state_);
    id_ = std::exchange(other.id_, 0);
  }
  return *this;
}

CancellationToken::Registration::~Registration() {
  auto state = state_.lock();
  if (!state || id_ == 0) return;
  {
    std::lock_guard lock(state->mutex);
    if (state->callbacks.erase(id_) > 0) return;
  }
  std::lock_guard wait_for_running(state->running);
}

}  // namespace holt
