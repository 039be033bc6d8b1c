#include "call.hpp"

#include <cerrno>
#include <condition_variable>
#include <deque>
#include <poll.h>
#include <sys/eventfd.h>
#include <thread>
#include <unistd.h>

namespace holt::python {

namespace {

// The main thread looks for signals that another thread received this often.
constexpr int k_signal_slice_ms = 100;
constexpr unsigned k_most_threads = 16;

/// Threads that come when needed and stay. Never destroyed: at the interpreter's end a thread may still be in
/// a call, and a forked child has none of them.
class Pool {
 public:
  void run(std::function<void()> work) {
    std::lock_guard lock(mutex_);
    queue_.push_back(std::move(work));
    if (queue_.size() > idle_ && threads_ < k_most_threads) {
      ++threads_;
      std::thread([this] { serve(); }).detach();
    }
    changed_.notify_one();
  }

 private:
  void serve() {
    std::unique_lock lock(mutex_);
    for (;;) {
      ++idle_;
      changed_.wait(lock, [&] { return !queue_.empty(); });
      --idle_;
      auto work = std::move(queue_.front());
      queue_.pop_front();
      lock.unlock();
      work();
      work = nullptr;
      lock.lock();
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> queue_;
  std::size_t idle_ = 0;
  unsigned threads_ = 0;
};

}  // namespace

void run_on_pool(std::function<void()> work) {
  static Pool* pool = new Pool;  // NOLINT(cppcoreguidelines-owning-memory): see Pool
  pool->run(std::move(work));
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

bool wait_readable(int fd, int milliseconds) {
  pollfd entry{fd, POLLIN, 0};
  int ready = 0;
  {
    nb::gil_scoped_release release;
    ready = ::poll(&entry, 1, milliseconds);
  }
  if (PyErr_CheckSignals() != 0) throw nb::python_error();
  return ready > 0;
}

nb::object Call::wait() {
  for (;;) {
    wait_readable(fd(), k_signal_slice_ms);
    if (auto result = take()) return std::move(*result);
  }
}

void bind_calls(nb::module_& module) {
  nb::class_<Call>(module, "Call")
      .def("fileno", &Call::fd)
      .def("cancel", &Call::cancel)
      .def("wait", &Call::wait)
      .def("poll", [](Call& call) {
        auto result = call.take();
        return nb::make_tuple(result.has_value(), result ? *result : nb::object(nb::none()));
      });
}

}  // namespace holt::python
