// The guest's event loop: descriptors, timers, work handed in from other threads. One thread runs it.
#pragma once

#include "holt/base/fd.hpp"

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <sys/epoll.h>
#include <unordered_map>
#include <vector>

namespace holt::guest {

/// post() may be called from any thread, everything else only from the thread in run().
class Loop {
 public:
  using Clock = std::chrono::steady_clock;
  using Handler = std::function<void(std::uint32_t events)>;
  using Work = std::function<void()>;
  enum class Watch : std::uint64_t { none };
  enum class Timer : std::uint64_t { none };

  Loop();

  /// Calls `handler` when one of `events` (EPOLLIN, EPOLLOUT) is there, again and again. 0 events: paused, no
  /// hang-up is reported either. The descriptor must be unwatched before it is closed.
  Watch watch(int fd, std::uint32_t events, Handler handler);
  void change(Watch watch, std::uint32_t events);
  void unwatch(Watch watch);

  Timer after(Clock::duration delay, Work work);
  void cancel(Timer timer);

  /// Runs `work` when the events at hand have been dealt with.
  void defer(Work work) { deferred_.push_back(std::move(work)); }
  /// As defer(), from any thread.
  void post(Work work);

  /// Returns after stop().
  void run();
  void stop() { stopped_ = true; }

 private:
  struct Entry {
    int fd = -1;
    std::uint32_t events = 0;
    Handler handler;
  };
  void control(int operation, std::uint64_t id, const Entry& entry);
  void run_due_timers();
  void run_deferred();
  int wait_milliseconds() const;

  Fd epoll_;
  Fd wake_;
  bool stopped_ = false;
  std::uint64_t next_id_ = 1;
  std::unordered_map<std::uint64_t, Entry> entries_;
  std::multimap<Clock::time_point, std::pair<std::uint64_t, Work>> timers_;
  std::vector<Work> deferred_;
  std::mutex mutex_;  // guards posted_
  std::vector<Work> posted_;
};

}  // namespace holt::guest
