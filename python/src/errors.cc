#include "python/src/errors.h"

#include <exception>
#include <new>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

#include <pybind11/pybind11.h>

#include "lazuli/error.h"

namespace lazuli::python {
namespace {

PyObject* TypeOf(ErrorCode code) {
  switch (code) {
    case ErrorCode::kInvalidArgument:
      return PyExc_ValueError;
    case ErrorCode::kOutOfRange:
      return PyExc_IndexError;
    case ErrorCode::kUnimplemented:
      return PyExc_NotImplementedError;
    default:
      return PyExc_RuntimeError;
  }
}

// What messages of C++ advise, and what it is called in Python.
constexpr std::pair<std::string_view, std::string_view> kAdvice[] = {
    {"to_vector()", "tolist()"},
    {"under NoGrad", "under no_grad()"},
};

// Unless there is one already: that of a signal, which ended a wait.
void SetError(const Error& error) {
  if (PyErr_Occurred() != nullptr) return;
  std::string message = error.what();
  for (const auto& [cpp, python] : kAdvice) {
    const std::size_t at = message.find(cpp);
    if (at != std::string::npos) message.replace(at, cpp.size(), python);
  }
  PyErr_SetString(TypeOf(error.code()), message.c_str());
}

}  // namespace

void SetErrorFromException() noexcept {
  try {
    throw;
  } catch (pybind11::error_already_set& error) {
    error.restore();
  } catch (const pybind11::builtin_exception& error) {
    error.set_error();
  } catch (const Error& error) {
    SetError(error);
  } catch (const std::bad_alloc&) {
    PyErr_NoMemory();
  } catch (const std::exception& error) {
    PyErr_SetString(PyExc_RuntimeError, error.what());
  } catch (...) {
    PyErr_SetString(PyExc_RuntimeError, "an exception of unknown type");
  }
}

void RegisterErrors() {
  pybind11::register_exception_translator([](std::exception_ptr exception) {
    try {
      if (exception) std::rethrow_exception(exception);
    } catch (const Error& error) {
      SetError(error);
    }
  });
}

void ThrowTypeError(const std::string& message) { throw pybind11::type_error(message); }

}  // namespace lazuli::python
