// Values between C++ and Python: options out of dicts, results into dicts that holt._types makes classes of.
#pragma once

#include "holt/machine/config.hpp"
#include "holt/machine/exec.hpp"
#include "holt/machine/files.hpp"
#include "holt/machine/host_config.hpp"
#include "holt/machine/types.hpp"

#include <nanobind/nanobind.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace holt::python {

namespace nb = nanobind;

/// The options of a call, by name; what is absent or None is the option's default. Python has checked names
/// and types before.
class Options {
 public:
  explicit Options(nb::dict values) : values_(std::move(values)) {}

  template <class T>
  std::optional<T> get(const char* name) const {
    if (!values_.contains(name)) return std::nullopt;
    nb::object value = values_[name];
    if (value.is_none()) return std::nullopt;
    return nb::cast<T>(value);
  }
  template <class T>
  T get(const char* name, T otherwise) const {
    return get<T>(name).value_or(std::move(otherwise));
  }
  /// bytes
  std::optional<std::string> bytes(const char* name) const;
  std::string bytes_or(const char* name, std::string otherwise = {}) const {
    return bytes(name).value_or(std::move(otherwise));
  }
  /// A list of bytes.
  std::vector<std::string> bytes_list(const char* name) const;
  /// A dict of bytes to bytes.
  std::map<std::string, std::string> bytes_map(const char* name) const;
  /// Seconds.
  std::optional<Duration> seconds(const char* name) const;

 private:
  nb::dict values_;
};

std::string from_bytes(nb::handle value);
nb::bytes to_bytes(std::string_view bytes);
/// Text that may hold anything: UTF-8 with surrogate escapes, so that it can go back.
nb::object to_path(std::string_view bytes);
/// Text of people: U+FFFD for what is no UTF-8.
nb::object to_text(std::string_view text);
double to_seconds(Duration duration);

nb::dict to_dict(const ExecResult& result);
nb::dict to_dict(const FileStat& stat);
nb::dict to_dict(const DirEntry& entry);
nb::dict to_dict(const MachineInfo& info);
nb::dict to_dict(const CopyResult& result);
nb::dict to_dict(const ExecEvent& event);

MachineConfig machine_config(const Options& options);
ExecOptions exec_options(const Options& options);
HostConfig host_config(const Options& options);

}  // namespace holt::python
