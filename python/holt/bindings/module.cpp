// holt._native: the C++ SDK for the package's own modules. Nobody else imports it; it trusts the types that
// holt._arguments has checked.
#include "call.hpp"
#include "errors.hpp"
#include "images.hpp"
#include "machine.hpp"

#include <nanobind/nanobind.h>

NB_MODULE(_native, module) {
  // Calls under way at the interpreter's end keep objects alive; that is no news to a user.
  nanobind::set_leak_warnings(false);
  holt::python::bind_errors();
  holt::python::bind_calls(module);
  holt::python::bind_streams(module);
  holt::python::bind_machine(module);
  holt::python::bind_images(module);
}
