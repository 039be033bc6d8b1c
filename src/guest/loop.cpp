#include "guest/loop.hpp"

#include <algorithm>
#include <array>
#include <sys/eventfd.h>
#include <unistd.h>

#include <climits>

namespace holt::guest {

Loop::Loop() : epoll_(::epoll_create1(EPOLL_CLOEXEC)), wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  watch(wake_.get(), EPOLLIN, [this](std::uint32_t) {
    std::uint64_t count = 0;
    while (::read(wake_.get(), &count, sizeof count) > 0) {
    }
    std::vector<Work> work;
    {
      std::lock_guard lock(mutex_);
      work.swap(posted_);
    }
    for (auto& item : work) item();
  });
}

void Loop::control(int operation, std::uint64_t id, const Entry& entry) {
  epoll_event event{.events = entry.events, .data = {.u64 = id}};
  ::epoll_ctl(epoll_.get(), operation, entry.fd, &event);
}

Loop::Watch Loop::watch(int fd, std::uint32_t events, Handler handler) {
  auto id = next_id_++;
  auto& entry = entries_[id] = Entry{fd, events, std::move(handler)};
  if (events != 0) control(EPOLL_CTL_ADD, id, entry);
  return static_cast<Watch>(id);
}

void Loop::change(Watch watch, std::uint32_t events) {
  auto id = static_cast<std::uint64_t>(watch);
  auto found = entries_.find(id);
  if (found == entries_.end() || found->second.events == events) return;
  auto before = std::exchange(found->second.events, events);
  control(before == 0 ? EPOLL_CTL_ADD : events == 0 ? EPOLL_CTL_DEL : EPOLL_CTL_MOD, id, found->second);
}

void Loop::unwatch(Watch watch) {
  change(watch, 0);
  entries_.erase(static_cast<std::uint64_t>(watch));
}

Loop::Timer Loop::after(Clock::duration delay, Work work) {
  // A delay past the clock's end would come out in the past.
  auto longest = std::chrono::hours(24 * 365 * 20);
  auto id = next_id_++;
  timers_.emplace(Clock::now() + std::min<Clock::duration>(delay, longest), std::pair(id, std::move(work)));
  return static_cast<Timer>(id);
}

void Loop::cancel(Timer timer) {
  std::erase_if(timers_,
                [&](const auto& item) { return item.second.first == static_cast<std::uint64_t>(timer); });
}

void Loop::post(Work work) {
  bool first = false;
  {
    std::lock_guard lock(mutex_);
    first = posted_.empty();
    posted_.push_back(std::move(work));
  }
  std::uint64_t one = 1;
  if (first) [[maybe_unused]]
    auto written = ::write(wake_.get(), &one, sizeof one);
}

int Loop::wait_milliseconds() const {
  if (!deferred_.empty()) return 0;
  if (timers_.empty()) return -1;
  auto left = std::chrono::ceil<std::chrono::milliseconds>(timers_.begin()->first - Clock::now()).count();
  return static_cast<int>(std::clamp<long long>(left, 0, INT_MAX));
}

void Loop::run_due_timers() {
  auto now = Clock::now();
  while (!timers_.empty() && timers_.begin()->first <= now) {
    auto work = std::move(timers_.begin()->second.second);
    timers_.erase(timers_.begin());
    work();
  }
}

void Loop::run_deferred() {
  std::vector<Work> work;
  work.swap(deferred_);
  for (auto& item : work) item();
}

void Loop::run() {
  std::array<epoll_event, 64> events{};
  while (!stopped_) {
    int count =
        ::epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()), wait_milliseconds());
    for (int i = 0; i < count; ++i) {
      auto found = entries_.find(events[static_cast<std::size_t>(i)].data.u64);
      if (found == entries_.end()) continue;  // a handler before it unwatched it
      auto handler = found->second.handler;   // a handler may unwatch itself
      handler(events[static_cast<std::size_t>(i)].events);
    }
    run_due_timers();
    run_deferred();
  }
}

}  // namespace holt::guest
