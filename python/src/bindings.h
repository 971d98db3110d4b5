// What each source of this folder adds to the module.
#pragma once

#include <string_view>

#include <pybind11/pybind11.h>

#include "lazuli/hlo.h"
#include "lazuli/nn.h"
#include "lazuli/tensor.h"

namespace lazuli::python {

namespace py = pybind11;

// bind.cc: what rows may call a parameter that PyTorch or NumPy call this.
py::list OwnNames(std::string_view name);
// signatures.cc: lets inspect.signature() know what pybind11 bound.
void GiveSignature(PyMethodDef& definition);
// tensor.cc: the class, and its methods that are no rows.
void DeclareTensor(py::module_& module);
void BindTensor(py::module_& module);
// operators.cc
void SetOperators(PyHeapTypeObject* type);
// indexing.cc: x[1, ..., 2:8:2, None]
Tensor GetItem(const Tensor& x, py::handle index);
void SetItem(Tensor& x, py::handle index, py::handle value, bool accumulate);
// numpy.cc
void BindNumPy(py::module_& module);
// serialize.cc
Tensor ToTensor(py::handle values);   // a tensor, or lazuli.tensor() of it
std::string ToPath(py::handle path);  // a str or what os.fspath() takes
void BindSerialize(py::module_& module);
void BindModuleState(py::module_& nn, py::class_<nn::Module>& type);
// The rest of the library.
void BindAutograd(py::module_& module);
void BindRandom(py::module_& module);
void BindRuntime(py::module_& module);
void BindProfiler(py::module_& module);
void BindNn(py::module_& module);
void BindOptim(py::module_& module);
void BindData(py::module_& module);
void BindHlo(py::module_& module);
void BindControl(py::module_& module);
void BindFunc(py::module_& module);
void BindJit(py::module_& module);
void BindLibrary(py::module_& module);
void BindTorch(py::module_& hlo);
// hlo.cc: a shape as Python writes it, an HloShape, a tensor, or (dtype, dims).
HloShape ToShape(py::handle given);

}  // namespace lazuli::python
