#include "python/src/size.h"

#include <cstddef>

namespace lazuli::python {
namespace {

namespace py = pybind11;

PyTypeObject* size_type = nullptr;

// The tuple as a Size.
PyObject* AsSize(PyObject* tuple) {
  if (tuple == nullptr) return nullptr;
  PyObject* const size = PyObject_CallOneArg(reinterpret_cast<PyObject*>(size_type), tuple);
  Py_DECREF(tuple);
  return size;
}

PyObject* SizeSubscript(PyObject* self, PyObject* key) {
  PyObject* const found = PyTuple_Type.tp_as_mapping->mp_subscript(self, key);
  return PySlice_Check(key) ? AsSize(found) : found;
}
PyObject* SizeConcat(PyObject* self, PyObject* other) {
  return AsSize(PyTuple_Type.tp_as_sequence->sq_concat(self, other));
}
PyObject* SizeRepeat(PyObject* self, Py_ssize_t count) {
  return AsSize(PyTuple_Type.tp_as_sequence->sq_repeat(self, count));
}
PyObject* SizeRepr(PyObject* self) {
  const auto list = py::reinterpret_steal<py::object>(PySequence_List(self));
  return list ? PyUnicode_FromFormat("lazuli.Size(%R)", list.ptr()) : nullptr;
}
PyObject* SizeNumel(PyObject* self, PyObject*) {
  auto count = py::reinterpret_steal<py::object>(PyLong_FromLong(1));
  for (Py_ssize_t i = 0; count && i < PyTuple_GET_SIZE(self); ++i)
    count = py::reinterpret_steal<py::object>(
        PyNumber_Multiply(count.ptr(), PyTuple_GET_ITEM(self, i)));
  return count.release().ptr();
}

}  // namespace

py::tuple NewSize(const Dims& dims) {
  auto size = py::reinterpret_steal<py::tuple>(
      size_type->tp_alloc(size_type, static_cast<Py_ssize_t>(dims.size())));
  if (!size) throw py::error_already_set();
  for (std::size_t i = 0; i < dims.size(); ++i)
    PyTuple_SET_ITEM(size.ptr(), static_cast<Py_ssize_t>(i), py::int_(dims[i]).release().ptr());
  return size;
}

void BindSize(py::module_& module) {
  static PyMethodDef methods[] = {
      {"numel", SizeNumel, METH_NOARGS, "numel($self)\n--\n\nThe product of the sizes."}, {}};
  static PyType_Slot slots[] = {
      {Py_tp_doc, const_cast<char*>("The size of each dim: a tuple, whose numel() is their "
                                    "product.")},
      {Py_tp_methods, methods},
      {Py_tp_repr, reinterpret_cast<void*>(&SizeRepr)},
      {Py_mp_subscript, reinterpret_cast<void*>(&SizeSubscript)},
      {Py_sq_concat, reinterpret_cast<void*>(&SizeConcat)},
      {Py_sq_repeat, reinterpret_cast<void*>(&SizeRepeat)},
      {0, nullptr}};
  static PyType_Spec spec{"lazuli.Size", 0, 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE, slots};
  const auto bases = py::make_tuple(py::handle(reinterpret_cast<PyObject*>(&PyTuple_Type)));
  auto type = py::reinterpret_steal<py::object>(PyType_FromSpecWithBases(&spec, bases.ptr()));
  if (!type) throw py::error_already_set();
  size_type = reinterpret_cast<PyTypeObject*>(type.ptr());
  module.attr("Size") = type;
  type.inc_ref();  // for size_type
}

}  // namespace lazuli::python
