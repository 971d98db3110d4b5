// Functions of Python as hooks of tensors, and how Python's collector of cycles sees them.
//
// C++ owns a hook: a leaf does, or the op whose result was hooked, which the histories of other
// tensors share. So no Python object holds it by a reference that the collector could count. Before
// it looks at everything (its oldest generation), the references of C++ are counted: where all that
// leads to a hook starts at Python objects - tensors, modules, optimisers - each of these shows it
// to the collector as something that it holds; where anything else leads to it, none does, and it
// stays. While there is no hook, nothing of this costs anything.
#pragma once

#include <vector>

#include <pybind11/pybind11.h>

#include "lazuli/autograd.h"
#include "lazuli/tensor.h"

namespace lazuli::python {

namespace py = pybind11;

HookHandle RegisterHook(Tensor& x, const py::function& hook);

// For tp_traverse: shows the hooks that the object leads to, while the collector looks at all.
int VisitHooks(PyObject* self, visitproc visit, void* arg);

// The tensors that objects of this type hold besides the state of their module.
using TensorMember = Tensor& (*)(void* object);
void SetHeldTensors(PyTypeObject* type, std::vector<TensorMember> members);

}  // namespace lazuli::python
