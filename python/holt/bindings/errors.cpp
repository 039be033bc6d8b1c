#include "errors.hpp"

#include "convert.hpp"
#include "holt/base/error.hpp"
#include "holt/machine/exec.hpp"

namespace holt::python {

namespace {

/// The exception of the class of holt._errors that stands for the code.
nb::object exception_of(const Error& error) {
  nb::list causes;
  for (const auto& cause : error.causes()) causes.append(to_text(cause));
  auto make = nb::module_::import_("holt._errors").attr("from_native");
  return make(std::string(to_string(error.code())), to_text(error.what()), to_text(error.subject()),
              to_text(error.hint()), error.retryable(), causes);
}

nb::object exception_of(const OutputLimitError& error) {
  auto make = nb::module_::import_("holt._errors").attr("output_limit_error");
  return make(to_text(error.what()), to_text(error.hint()), error.limit(), to_bytes(error.out_preview()),
              to_bytes(error.err_preview()));
}

template <class Failure>
void raise(const Failure& error) {
  try {
    nb::object exception = exception_of(error);
    PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(exception.ptr())), exception.ptr());
  } catch (nb::python_error& failure) {
    failure.restore();
  }
}

}  // namespace

void bind_errors() {
  nb::register_exception_translator([](const std::exception_ptr& pointer, void*) {
    try {
      std::rethrow_exception(pointer);
    } catch (const OutputLimitError& error) {
      raise(error);
    } catch (const Error& error) {
      raise(error);
    }
  });
}

}  // namespace holt::python
