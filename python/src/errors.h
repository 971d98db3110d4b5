// Errors of the library as Python's: lazuli.Error, which is a RuntimeError, and classes below it that
// are ValueError, IndexError, TypeError or NotImplementedError, too.
#pragma once

#include <string>
#include <utility>

#include <pybind11/pybind11.h>

namespace lazuli::python {

// Turns the exception being handled into Python's current error.
void SetErrorFromException() noexcept;
// The same for what pybind11 calls; adds the classes to the module.
void RegisterErrors(pybind11::module_& module);

// "matmul: y must be a Tensor, not list".
[[noreturn]] void ThrowTypeError(const std::string& message);

// What f returns; null with Python's error set if it throws. For functions that Python calls.
template <class F>
PyObject* Guarded(F&& f) noexcept {
  try {
    return std::forward<F>(f)();
  } catch (...) {
    SetErrorFromException();
    return nullptr;
  }
}

// Gives the functions of pybind11 in the module and its types words of their own for arguments that
// do not fit: "size: takes (dim: int), not (str)". Once all are bound.
void RewordMismatches(pybind11::handle module);

}  // namespace lazuli::python
