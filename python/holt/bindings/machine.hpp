// holt::Machine for holt._requests: each method that waits gives a Call.
#pragma once

#include "holt/machine/machine.hpp"
#include "holt/machine/operations.hpp"
#include "registry.hpp"

#include <nanobind/nanobind.h>

namespace holt::python {

namespace nb = nanobind;

class MachineObject final : public Abandonable {
 public:
  explicit MachineObject(Machine machine) : machine_(std::move(machine)), calls_(machine_) {}

  const Machine& machine() const { return machine_; }
  const Operations& calls() const { return calls_; }
  void cancel() override {}
  void abandon() noexcept override { machine_.abandon(); }

 private:
  Machine machine_;
  Operations calls_;
};

using MachineClass = nb::class_<MachineObject>;

/// Starts, ends and what is known of a machine, and the functions of the module.
void bind_lifecycle(nb::module_& module, MachineClass& type);
void bind_commands(MachineClass& type);
void bind_files(MachineClass& type);

}  // namespace holt::python
