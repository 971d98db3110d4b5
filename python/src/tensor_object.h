// The Python objects of tensors: one for each, as long as somebody has it.
//
// A step makes and drops one for each op, and pybind11's way there - a type found by its name's
// hash, a table of all instances, changed twice - takes longer than recording the op. These objects
// have pybind11's layout, so that it takes them wherever it takes a Tensor, but are in a list of
// their own instead of its table: the table answers which object a C++ address has, which nobody
// asks of a result. Which object a tensor has, the tensor itself says.
#pragma once

#include <utility>
#include <vector>

#include <pybind11/pybind11.h>

#include "lazuli/tensor.h"

namespace lazuli::python {

namespace py = pybind11;

// Tensor's type, once it is declared.
extern PyTypeObject* tensor_type;

// The object that the tensor has, or a new one.
py::object TensorObject(Tensor tensor);

// All such objects that there are.
const std::vector<py::detail::instance*>& TensorObjects();

// Tensor's type: objects that the collector of cycles passes by (cycles.h), of which those that
// TensorObject made are freed as they were made.
void SetUpTensorObjects(PyHeapTypeObject* type);
// The type of a class that derives from it, all of whose objects are pybind11's.
void SetUpDerivedTensorObjects(PyHeapTypeObject* type);

// Makes an object that pybind11 has made the one of its tensor.
void BecomeTensorObject(py::handle object);
// Gives an object of Tensor's type, or of one that derives from it, its value, in a constructor.
template <class T>
void ConstructTensorObject(py::detail::value_and_holder& made, T value) {
  made.value_ptr() = new T(std::move(value));
  BecomeTensorObject(reinterpret_cast<PyObject*>(made.inst));
}

}  // namespace lazuli::python
