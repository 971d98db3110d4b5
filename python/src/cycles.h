// What Python's collector of cycles sees of objects whose types pybind11 makes.
//
// By itself it sees nothing of them: a cycle through one is never freed. A type made with one of
// these setups shows the collector
//   - its attributes, if it has any (WithAttributes);
//   - what keep_alive or Keep() made it keep (its patients, as pybind11 calls them);
//   - the hooks that it leads to (hooks.h).
// What C++ holds of Python's objects it therefore holds as a borrowed reference, and the Python
// object that owns the C++ one keeps the other alive. The collector then counts each reference
// once, however many C++ objects share it.
#pragma once

#include <pybind11/pybind11.h>

namespace lazuli::python {

namespace py = pybind11;

// Objects that keep others.
py::custom_type_setup WithPatients();
// The same, and a __dict__. Not py::dynamic_attr, whose dict the collector counts twice in the
// instances of a class of Python that derives from the type (3.11 and 3.12), so that no cycle
// through it is ever freed.
py::custom_type_setup WithAttributes();
// Objects that keep others, and that threads without the interpreter's lock use: finalize(object)
// runs before anything in the cycle is cleared.
py::custom_type_setup WithPatients(void (*finalize)(PyObject*));

// Objects of which there are many, and few that lead to a cycle: the collector passes them by until
// they have an attribute, or hooks.h makes it look at one. They have a __dict__.
void SetUpUntracked(PyHeapTypeObject* type);
// Drops the attributes of such an object.
void ClearAttributes(PyObject* self);

// The first keeps the second alive.
void Keep(py::handle keeper, py::handle kept);

}  // namespace lazuli::python
