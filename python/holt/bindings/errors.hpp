// holt::Error as exceptions of holt._errors.
#pragma once

namespace holt::python {

void bind_errors();

}  // namespace holt::python
