// Options of calls out of dicts that holt._requests has checked.
#pragma once

#include "convert.hpp"
#include "holt/machine/config.hpp"
#include "holt/machine/exec.hpp"
#include "holt/machine/host_config.hpp"

#include <map>
#include <nanobind/nanobind.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>
#include <optional>
#include <string>
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
  /// A dict of bytes to bytes or None.
  std::map<std::string, std::optional<std::string>> bytes_changes(const char* name) const;
  bool has(const char* name) const { return values_.contains(name); }
  /// Seconds.
  std::optional<Duration> seconds(const char* name) const;
  /// So many seconds from now.
  std::optional<Deadline> deadline(const char* name) const;
  /// What calls take: `timeout` in seconds.
  CallOptions call() const { return {.deadline = deadline("timeout")}; }

 private:
  nb::dict values_;
};

/// Of "pull", a word that Python has checked.
image::PullPolicy pull_policy(const Options& options);
MachineConfig machine_config(const Options& options);
ExecOptions exec_options(const Options& options);
HostConfig host_config(const Options& options);

}  // namespace holt::python
