// holt._native: the C++ SDK for the package's own modules. Nobody else imports it; it trusts the types that
// holt._arguments has checked.
#include "call.hpp"
#include "errors.hpp"
#include "images.hpp"
#include "machine.hpp"
#include "streams.hpp"

#include <nanobind/nanobind.h>

NB_MODULE(_native, module) {
  using namespace holt::python;
  // Calls under way at the interpreter's end keep objects alive; that is no news to a user.
  nanobind::set_leak_warnings(false);
  bind_errors();
  bind_calls(module);
  bind_streams(module);
  MachineClass machine(module, "Machine");
  bind_lifecycle(module, machine);
  bind_commands(machine);
  bind_files(machine);
  bind_images(module);
}
