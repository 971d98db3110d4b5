// PyTorch's protocol for classes that stand in for tensors: a function whose arguments do not fit asks the
// first one whose type has __torch_function__(function, types, args, kwargs).
#pragma once

#include <pybind11/pybind11.h>

namespace lazuli::python {

// What such an argument gives for a call of the function of this name, of the object `first` if that is not
// null; null where there is none, or it gives NotImplemented. Lists and tuples are looked into.
PyObject* AskTorchFunction(const char* name, PyObject* first, PyObject* const* arguments,
                           Py_ssize_t n, PyObject* names);

}  // namespace lazuli::python
