// Streams of commands and files for holt._streams.
#pragma once

#include "holt/machine/exec.hpp"

#include <nanobind/nanobind.h>
#include <optional>

namespace holt::python {

namespace nb = nanobind;

class Stream {
 public:
  explicit Stream(ExecStream stream) : stream_(std::move(stream)) {}

  nb::object next(std::optional<double> timeout);
  void write(nb::bytes data);
  void close_stdin();
  void signal(int number);
  void kill();
  int fd() { return stream_.fd(); }

 private:
  ExecStream stream_;
};

}  // namespace holt::python
