// Results of C++ as dicts that holt._types makes classes of.
#pragma once

#include "holt/machine/exec.hpp"
#include "holt/machine/files.hpp"
#include "holt/machine/types.hpp"
#include "holt/machine/walk.hpp"

#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <string>
#include <string_view>
#include <vector>

namespace holt::python {

namespace nb = nanobind;

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

nb::dict to_dict(const Resources& resources);
nb::dict to_dict(const MachineEvent& event);
nb::dict to_dict(const MachineStats& stats);
nb::dict to_dict(const CommandInfo& info);
nb::dict to_dict(const WalkEntry& entry);

template <class T>
nb::list to_list(const std::vector<T>& values) {
  nb::list result;
  for (const auto& value : values) result.append(to_dict(value));
  return result;
}

}  // namespace holt::python
