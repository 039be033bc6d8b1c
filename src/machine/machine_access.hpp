// What calls outside of Machine need of one.
#pragma once

#include "holt/machine/machine.hpp"
#include "machine/record.hpp"

namespace holt {

struct MachineAccess {
  static const machine::MachineFolder& folder(const Machine& machine);
};

namespace machine {

const MachineFolder& folder_of(const Machine& machine);

}  // namespace machine
}  // namespace holt
