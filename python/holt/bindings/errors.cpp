#include "errors.hpp"

#include "convert.hpp"
#include "holt/base/error.hpp"

namespace holt::python {

namespace {

/// Raises the class of holt._errors that stands for the code.
void raise(const Error& error) {
  nb::list causes;
  for (const auto& cause : error.causes()) causes.append(to_text(cause));
  auto make = nb::module_::import_("holt._errors").attr("from_native");
  nb::object exception = make(std::string(to_string(error.code())), to_text(error.what()),
                              to_text(error.subject()), to_text(error.hint()), error.retryable(), causes);
  PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(exception.ptr())), exception.ptr());
}

}  // namespace

void bind_errors() {
  nb::register_exception_translator([](const std::exception_ptr& pointer, void*) {
    try {
      std::rethrow_exception(pointer);
    } catch (const Error& error) {
      try {
        raise(error);
      } catch (nb::python_error& failure) {
        failure.restore();
      }
    }
  });
}

}  // namespace holt::python
