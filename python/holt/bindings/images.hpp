// The host's image store for holt._images.
#pragma once

#include <nanobind/nanobind.h>

namespace holt::python {

void bind_images(nanobind::module_& module);

}  // namespace holt::python
