// Streams of commands, files and trees. Each has calls that do not wait, for event loops, and the same
// waiting.
#pragma once

#include "holt/machine/exec.hpp"
#include "holt/machine/files.hpp"
#include "holt/machine/walk.hpp"
#include "registry.hpp"

#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <optional>

namespace holt::python {

namespace nb = nanobind;

/// A command's stream.
class Stream final : public Abandonable {
 public:
  explicit Stream(ExecStream stream) : stream_(std::move(stream)) {}

  /// (there is something, event or None for the end)
  nb::tuple poll();
  /// None at the end. `timeout` in seconds: TIMEOUT then.
  nb::object next(std::optional<double> timeout);
  /// How many bytes from `offset` on were taken.
  std::size_t try_write(nb::bytes data, std::size_t offset);
  void write(nb::bytes data);
  void close_stdin() { stream_.close_stdin(); }
  void signal(int number) { stream_.signal(number); }
  void resize(unsigned rows, unsigned columns) { stream_.resize({.rows = rows, .columns = columns}); }
  void cancel() override { stream_.kill(); }
  void abandon() noexcept override { stream_.abandon(); }
  int fd() { return stream_.fd(); }
  int input_fd() { return stream_.input_fd(); }

 private:
  ExecStream stream_;
};

/// A file being read.
class Reader final : public Abandonable {
 public:
  explicit Reader(FileReader reader) : reader_(std::move(reader)) {}

  nb::dict stat();
  /// (there is something, bytes or None for the end)
  nb::tuple poll();
  nb::object next();
  void cancel() override { reader_.cancel(); }
  void abandon() noexcept override { reader_.abandon(); }
  int fd() { return reader_.fd(); }

 private:
  FileReader reader_;
};

/// A file being written.
class Writer final : public Abandonable {
 public:
  explicit Writer(FileWriter writer) : writer_(std::move(writer)) {}

  std::size_t try_write(nb::bytes data, std::size_t offset);
  void write(nb::bytes data);
  bool try_finish() { return writer_.try_finish(); }
  void finish();
  void cancel() override { writer_.cancel(); }
  void abandon() noexcept override { writer_.abandon(); }
  int write_fd() { return writer_.write_fd(); }
  int finish_fd() { return writer_.finish_fd(); }

 private:
  FileWriter writer_;
};

/// The entries of a tree, many at once.
class Walk final : public Abandonable {
 public:
  explicit Walk(TreeWalk walk) : walk_(std::move(walk)) {}

  /// (there is something, list of entries or None for the end)
  nb::tuple poll();
  nb::object next();
  void cancel() override { walk_.cancel(); }
  void abandon() noexcept override { walk_.abandon(); }
  int fd() { return walk_.fd(); }

 private:
  TreeWalk walk_;
};

void bind_streams(nb::module_& module);

}  // namespace holt::python
