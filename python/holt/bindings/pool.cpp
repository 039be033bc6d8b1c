#include "pool.hpp"

#include "holt/base/error.hpp"

#include <array>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <list>
#include <mutex>
#include <sys/eventfd.h>
#include <system_error>
#include <thread>
#include <unistd.h>
#include <utility>

namespace holt::python {

namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

constexpr unsigned k_most_threads = 24;
// Each look of a wait takes a millisecond, or a quarter of a second where a monitor does not answer.
constexpr unsigned k_most_waiting_threads = 4;
constexpr auto k_between_turns = 50ms;
constexpr auto k_idle_limit = 5s;

/// Threads that come when needed and go when there has been nothing to do for a while. Never destroyed: at
/// the interpreter's end a thread may still be in a call, and a forked child has none of them.
class Pool {
 public:
  explicit Pool(unsigned most_threads) : most_threads_(most_threads) {}

  void run(std::function<Turn()> work, const CancellationToken& cancel) {
    std::lock_guard lock(mutex_);
    ready_.push_back({std::move(work), cancel});
    if (ready_.size() > idle_ && threads_ < most_threads_) add_thread();
    changed_.notify_all();
  }

  void cancel() {
    std::lock_guard lock(mutex_);
    for (const auto* jobs : {&ready_, &later_, &running_}) {
      for (const auto& job : *jobs) job.cancel.cancel();
    }
    ready_.splice(ready_.end(), later_);
    changed_.notify_all();
  }

  void wait_for_end(Deadline deadline) {
    std::unique_lock lock(mutex_);
    auto ended = [&] { return ready_.empty() && later_.empty() && running_.empty(); };
    changed_.wait_until(lock, deadline.at().value_or(Deadline::Clock::now()), ended);
  }

 private:
  struct Job {
    std::function<Turn()> work;
    CancellationToken cancel;
    Clock::time_point due = {};
  };

  /// For the job that came last. Where no thread is to be had, those that are there do it later.
  void add_thread() {
    try {
      std::thread([this] { serve(); }).detach();
      ++threads_;
    } catch (const std::system_error& failure) {
      if (threads_ > 0) return;
      ready_.pop_back();
      throw system_error(failure.code().value(), "start a thread for a call");
    }
  }

  void serve() {
    std::unique_lock lock(mutex_);
    for (;;) {
      ++idle_;
      bool found = wait_for_job(lock);
      --idle_;
      if (!found) {
        --threads_;
        return;
      }
      running_.splice(running_.begin(), ready_, ready_.begin());
      auto job = running_.begin();
      lock.unlock();
      auto turn = job->work();
      // What the work holds goes here, not below the lock: it may want the interpreter's.
      if (turn == Turn::done) job->work = nullptr;
      lock.lock();
      if (turn == Turn::done) {
        running_.erase(job);
      } else {
        job->due = Clock::now() + k_between_turns;
        later_.splice(later_.end(), running_, job);
      }
      changed_.notify_all();
    }
  }

  /// False when none has come for so long that the thread may end.
  bool wait_for_job(std::unique_lock<std::mutex>& lock) {
    const auto idle_until = Clock::now() + k_idle_limit;
    for (;;) {
      // All wait equally long: the first is due first.
      while (!later_.empty() && later_.front().due <= Clock::now()) {
        ready_.splice(ready_.end(), later_, later_.begin());
      }
      if (!ready_.empty()) return true;
      if (!later_.empty()) {
        auto due = later_.front().due;
        changed_.wait_until(lock, due);
      } else if (changed_.wait_until(lock, idle_until) == std::cv_status::timeout) {
        return !ready_.empty();
      }
    }
  }

  const unsigned most_threads_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::list<Job> ready_;
  std::list<Job> later_;
  std::list<Job> running_;
  std::size_t idle_ = 0;
  unsigned threads_ = 0;
};

/// In the order of Lane.
std::array<Pool, 5>& lanes() {
  // NOLINTNEXTLINE(cppcoreguidelines-owning-memory): see Pool
  static auto* all = new std::array<Pool, 5>{Pool(k_most_threads), Pool(k_most_threads), Pool(k_most_threads),
                                             Pool(k_most_threads), Pool(k_most_waiting_threads)};
  return *all;
}

}  // namespace

void run_on_pool(Lane lane, std::function<Turn()> work, const CancellationToken& cancel) {
  lanes().at(static_cast<std::size_t>(lane)).run(std::move(work), cancel);
}

void end_pool(Deadline deadline) {
  for (auto& pool : lanes()) pool.cancel();
  for (auto& pool : lanes()) pool.wait_for_end(deadline);
}

Fd make_event() {
  Fd event(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!event) throw system_error(errno, "make an event descriptor");
  return event;
}

void set_event(int fd) {
  std::uint64_t one = 1;
  [[maybe_unused]] auto n = ::write(fd, &one, sizeof one);
}

}  // namespace holt::python
