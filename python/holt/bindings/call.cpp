#include "call.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <poll.h>
#include <thread>

namespace holt::python {

namespace {

using namespace std::chrono_literals;

// The main thread looks this often for signals that another thread received.
constexpr int k_signal_slice_ms = 100;
// At the interpreter's end: for machines that are being made to be taken back.
constexpr auto k_end_deadline = 10s;
// For threads to come back from their waits: one that comes later finds no interpreter.
constexpr auto k_waiters_deadline = 2s;

std::atomic<int> waiters = 0;

bool forked = false;

void let_go() {
  forked = true;
  abandon_all();
}

/// Ends what is under way, before the interpreter does.
void end_all() {
  if (forked) return;
  cancel_all();
  nb::gil_scoped_release release;
  auto deadline = Deadline::after(k_waiters_deadline);
  while (waiters > 0 && !deadline.passed()) std::this_thread::sleep_for(1ms);
  end_pool(Deadline::after(k_end_deadline));
}

}  // namespace

bool wait_readable(int fd, int milliseconds) {
  pollfd entry{fd, POLLIN, 0};
  int ready = 0;
  ++waiters;
  {
    nb::gil_scoped_release release;
    ready = ::poll(&entry, 1, milliseconds);
  }
  --waiters;
  if (PyErr_CheckSignals() != 0) throw nb::python_error();
  return ready > 0;
}

void wait_readable(int fd) {
  while (!wait_readable(fd, k_signal_slice_ms)) {
  }
}

nb::object Call::wait() {
  for (;;) {
    wait_readable(fd());
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
  module.def("abandon_all", let_go);
  module.def("end_all", end_all);
}

}  // namespace holt::python
