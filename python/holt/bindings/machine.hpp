// holt::Machine for holt._machine and holt._async: each method that waits gives a Call.
#pragma once

#include <nanobind/nanobind.h>

namespace holt::python {

void bind_machine(nanobind::module_& module);
void bind_streams(nanobind::module_& module);

}  // namespace holt::python
