#include "python/src/torch_function.h"

#include <array>

#include "python/src/arguments.h"
#include "python/src/tensor_object.h"

namespace py = pybind11;

namespace lazuli::python {
namespace {

// The first of the values that is not a tensor and whose type has the method; null if there is none.
PyObject* FindForeign(PyObject* value) {
  if (AsTensor(value) != nullptr) return nullptr;
  if (PyTuple_Check(value) || PyList_Check(value)) {
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(value); ++i) {
      if (PyObject* const found = FindForeign(PySequence_Fast_GET_ITEM(value, i))) return found;
    }
    return nullptr;
  }
  return py::hasattr(py::type::handle_of(value), "__torch_function__") ? value : nullptr;
}

// The function or method of the name as Python has it.
py::object FunctionOf(const char* name, bool is_method) {
  if (is_method) return py::getattr(reinterpret_cast<PyObject*>(tensor_type), name, py::none());
  const py::module_ root = py::module_::import("lazuli._C");
  if (py::hasattr(root, name)) return root.attr(name);
  for (const char* part : {"linalg", "special", "fft", "nn"}) {
    if (!py::hasattr(root, part)) continue;
    py::object module = root.attr(part);
    if (py::hasattr(module, "functional")) module = module.attr("functional");
    if (py::hasattr(module, name)) return module.attr(name);
  }
  return py::none();
}

}  // namespace

PyObject* AskTorchFunction(const char* name, PyObject* first, PyObject* const* arguments,
                           Py_ssize_t n, PyObject* names) {
  const Py_ssize_t keywords = names == nullptr ? 0 : PyTuple_GET_SIZE(names);
  PyObject* foreign = nullptr;
  for (Py_ssize_t i = 0; i < n + keywords && foreign == nullptr; ++i)
    foreign = FindForeign(arguments[i]);
  if (foreign == nullptr) return nullptr;
  py::list given;
  if (first != nullptr) given.append(py::handle(first));
  for (Py_ssize_t i = 0; i < n; ++i) given.append(py::handle(arguments[i]));
  py::dict named;
  for (Py_ssize_t i = 0; i < keywords; ++i)
    named[py::handle(PyTuple_GET_ITEM(names, i))] = py::handle(arguments[n + i]);
  const py::handle type = py::type::handle_of(foreign);
  py::object result = type.attr("__torch_function__")(
      FunctionOf(name, first != nullptr), py::make_tuple(type), py::tuple(given), named);
  return result.ptr() == Py_NotImplemented ? nullptr : result.release().ptr();
}

}  // namespace lazuli::python
