#include "streams.hpp"

#include "call.hpp"
#include "convert.hpp"
#include "holt/base/deadline.hpp"
#include "holt/base/error.hpp"

#include <algorithm>
#include <chrono>

namespace holt::python {

namespace {

// Between two turns of the interpreter; entries are small.
constexpr std::size_t k_entries_at_once = 1000;
constexpr int k_signal_slice_ms = 100;

nb::tuple something(nb::object value) {
  return nb::make_tuple(true, std::move(value));
}

nb::tuple nothing_yet() {
  return nb::make_tuple(false, nb::none());
}

/// Waits for what poll() gives.
template <class Object>
nb::object next_of(Object& object) {
  for (;;) {
    nb::tuple answer = object.poll();
    if (nb::cast<bool>(answer[0])) return answer[1];
    wait_readable(object.fd());
  }
}

std::string_view view(const nb::bytes& data, std::size_t offset) {
  std::string_view all(static_cast<const char*>(data.data()), data.size());
  return all.substr(std::min(offset, all.size()));
}

/// Writes all of it; `wait` when nothing was taken.
template <class Object>
void write_all(Object& object, const nb::bytes& data, int fd) {
  for (std::size_t offset = 0; offset < data.size();) {
    auto taken = object.try_write(data, offset);
    offset += taken;
    if (taken == 0) wait_readable(fd);
  }
}

}  // namespace

nb::tuple Stream::poll() {
  auto event = stream_.try_next();
  if (event.pending) return nothing_yet();
  return something(event.value ? nb::object(to_dict(*event.value)) : nb::object(nb::none()));
}

nb::object Stream::next(std::optional<double> timeout) {
  if (!timeout) return next_of(*this);
  auto deadline =
      Deadline::after(std::chrono::duration_cast<Duration>(std::chrono::duration<double>(*timeout)));
  for (;;) {
    nb::tuple answer = poll();
    if (nb::cast<bool>(answer[0])) return answer[1];
    if (deadline.passed()) throw Error(ErrorCode::timeout, "The command wrote nothing in time");
    wait_readable(fd(), std::min(deadline.poll_timeout(), k_signal_slice_ms));
  }
}

std::size_t Stream::try_write(nb::bytes data, std::size_t offset) {
  return stream_.try_write_stdin(view(data, offset));
}

void Stream::write(nb::bytes data) {
  write_all(*this, data, input_fd());
}

nb::dict Reader::stat() {
  return to_dict(reader_.stat());
}

nb::tuple Reader::poll() {
  auto piece = reader_.try_next();
  if (piece.pending) return nothing_yet();
  return something(piece.value ? nb::object(to_bytes(*piece.value)) : nb::object(nb::none()));
}

nb::object Reader::next() {
  return next_of(*this);
}

std::size_t Writer::try_write(nb::bytes data, std::size_t offset) {
  return writer_.try_write(view(data, offset));
}

void Writer::write(nb::bytes data) {
  write_all(*this, data, write_fd());
}

void Writer::finish() {
  while (!try_finish()) wait_readable(finish_fd());
}

nb::tuple Walk::poll() {
  nb::list entries;
  while (entries.size() < k_entries_at_once) {
    auto entry = walk_.try_next();
    if (!entry.value) {
      if (entries.size() > 0) break;
      return entry.pending ? nothing_yet() : something(nb::none());
    }
    entries.append(to_dict(*entry.value));
  }
  return something(std::move(entries));
}

nb::object Walk::next() {
  return next_of(*this);
}

void bind_streams(nb::module_& module) {
  nb::class_<Stream>(module, "Stream")
      .def("poll", &Stream::poll)
      .def("next", &Stream::next, nb::arg("timeout").none())
      .def("try_write", &Stream::try_write)
      .def("write", &Stream::write)
      .def("close_stdin", &Stream::close_stdin)
      .def("signal", &Stream::signal)
      .def("resize", &Stream::resize)
      .def("kill", &Stream::cancel)
      .def("fileno", &Stream::fd)
      .def("input_fileno", &Stream::input_fd);
  nb::class_<Reader>(module, "Reader")
      .def("stat", &Reader::stat)
      .def("poll", &Reader::poll)
      .def("next", &Reader::next)
      .def("cancel", &Reader::cancel)
      .def("fileno", &Reader::fd);
  nb::class_<Writer>(module, "Writer")
      .def("try_write", &Writer::try_write)
      .def("write", &Writer::write)
      .def("try_finish", &Writer::try_finish)
      .def("finish", &Writer::finish)
      .def("cancel", &Writer::cancel)
      .def("write_fileno", &Writer::write_fd)
      .def("finish_fileno", &Writer::finish_fd);
  nb::class_<Walk>(module, "Walk")
      .def("poll", &Walk::poll)
      .def("next", &Walk::next)
      .def("cancel", &Walk::cancel)
      .def("fileno", &Walk::fd);
}

}  // namespace holt::python
