#include "pool.hpp"

#include "holt/base/error.hpp"

#include <cerrno>
#include <condition_variable>
#include <cstdint>
#include <list>
#include <mutex>
#include <sys/eventfd.h>
#include <thread>
#include <unistd.h>
#include <utility>

namespace holt::python {

namespace {

constexpr unsigned k_most_threads = 24;

/// Threads that come when needed and stay. Never destroyed: at the interpreter's end a thread may still be in
/// a call, and a forked child has none of them.
class Pool {
 public:
  void run(std::function<void()> work, const CancellationToken& cancel) {
    std::lock_guard lock(mutex_);
    waiting_.push_back({std::move(work), cancel});
    if (waiting_.size() > idle_ && threads_ < k_most_threads) {
      ++threads_;
      std::thread([this] { serve(); }).detach();
    }
    changed_.notify_all();
  }

  void end(Deadline deadline) {
    std::unique_lock lock(mutex_);
    for (const auto* jobs : {&waiting_, &running_}) {
      for (const auto& job : *jobs) job.cancel.cancel();
    }
    auto ended = [&] { return waiting_.empty() && running_.empty(); };
    changed_.wait_until(lock, deadline.at().value_or(Deadline::Clock::now()), ended);
  }

 private:
  struct Job {
    std::function<void()> work;
    CancellationToken cancel;
  };

  void serve() {
    std::unique_lock lock(mutex_);
    for (;;) {
      ++idle_;
      changed_.wait(lock, [&] { return !waiting_.empty(); });
      --idle_;
      running_.splice(running_.begin(), waiting_, waiting_.begin());
      auto job = running_.begin();
      lock.unlock();
      job->work();
      // What the work holds goes here, not below the lock: it may want the interpreter's.
      job->work = nullptr;
      lock.lock();
      running_.erase(job);
      changed_.notify_all();
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::list<Job> waiting_;
  std::list<Job> running_;
  std::size_t idle_ = 0;
  unsigned threads_ = 0;
};

Pool& pool() {
  static auto* only = new Pool;  // NOLINT(cppcoreguidelines-owning-memory): see Pool
  return *only;
}

}  // namespace

void run_on_pool(std::function<void()> work, const CancellationToken& cancel) {
  pool().run(std::move(work), cancel);
}

void end_pool(Deadline deadline) {
  pool().end(deadline);
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
