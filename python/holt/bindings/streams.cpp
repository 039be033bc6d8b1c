#include "streams.hpp"

#include "call.hpp"
#include "convert.hpp"
#include "machine.hpp"

#include <chrono>

namespace holt::python {

using namespace std::chrono_literals;

nb::object Stream::next(std::optional<double> timeout) {
  auto deadline = timeout ? Deadline::after(std::chrono::duration_cast<Duration>(
                                std::chrono::duration<double>(std::min(*timeout, 1e9))))
                          : Deadline::never();
  for (;;) {
    std::optional<ExecEvent> event;
    bool waiting = false;
    {
      nb::gil_scoped_release release;
      try {
        event = stream_.next({.deadline = deadline.earlier(Deadline::after(100ms))});
      } catch (const Error& error) {
        if (error.code() != ErrorCode::timeout || deadline.passed()) throw;
        waiting = true;
      }
    }
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
    if (waiting) continue;
    return event ? nb::object(to_dict(*event)) : nb::object(nb::none());
  }
}

void Stream::write(nb::bytes data) {
  auto bytes = from_bytes(data);
  nb::gil_scoped_release release;
  stream_.write_stdin(bytes);
}

void Stream::close_stdin() {
  nb::gil_scoped_release release;
  stream_.close_stdin();
}

void Stream::signal(int number) {
  stream_.signal(number);
}

void Stream::kill() {
  stream_.kill();
}

void bind_streams(nb::module_& module) {
  nb::class_<Stream>(module, "Stream")
      .def("next", &Stream::next, nb::arg("timeout").none())
      .def("write", &Stream::write)
      .def("close_stdin", &Stream::close_stdin)
      .def("signal", &Stream::signal)
      .def("kill", &Stream::kill)
      .def("fileno", &Stream::fd);
}

}  // namespace holt::python
