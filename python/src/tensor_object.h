// The Python objects of tensors that functions give.
//
// A step makes and drops one for each op, and pybind11's way there - a type found by its name's
// hash, a table of all instances, changed twice - takes longer than recording the op. These objects
// have pybind11's layout, so that it takes them wherever it takes a Tensor, but are in a list of
// their own instead of its table: the table answers which object a C++ address has, which nobody
// asks of a result.
#pragma once

#include <vector>

#include <pybind11/pybind11.h>

#include "lazuli/tensor.h"

namespace lazuli::python {

namespace py = pybind11;

// Tensor's type, once it is declared.
extern PyTypeObject* tensor_type;

py::object NewTensorObject(Tensor tensor);

// All such objects that there are.
const std::vector<py::detail::instance*>& TensorObjects();

// Tensor's type: objects that the collector of cycles passes by (cycles.h), of which those that
// NewTensorObject made are freed as they were made.
void SetUpTensorObjects(PyHeapTypeObject* type);

}  // namespace lazuli::python
