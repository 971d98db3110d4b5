#include "python/src/cycles.h"

#include <cstddef>
#include <cstring>

#include "python/src/hooks.h"

namespace lazuli::python {
namespace {

using py::detail::instance;

// Behind what pybind11 has in an object. Null until the first attribute.
constexpr Py_ssize_t kDictOffset = sizeof(instance);
PyObject*& DictOf(PyObject* self) {
  return *reinterpret_cast<PyObject**>(reinterpret_cast<char*>(self) + kDictOffset);
}

// The collector may come before pybind11 has made the object, whose fields are 0 then.
int Traverse(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));  // instances hold a type that was made at run time
  if (const int result = VisitHooks(self, visit, arg); result != 0) return result;
  if (!reinterpret_cast<instance*>(self)->has_patients) return 0;
  const auto& all = py::detail::get_internals().patients;
  if (const auto own = all.find(self); own != all.end()) {
    for (PyObject* patient : own->second) Py_VISIT(patient);
  }
  return 0;
}
int Clear(PyObject* self) {
  if (reinterpret_cast<instance*>(self)->has_patients) py::detail::clear_patients(self);
  return 0;
}

int TraverseWithDict(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(DictOf(self));
  return Traverse(self, visit, arg);
}
int ClearWithDict(PyObject* self) {
  Py_CLEAR(DictOf(self));
  return Clear(self);
}

// Destructors may run Python, and so the collector, which must not see half an object.
void Deallocate(PyObject* self) {
  PyObject_GC_UnTrack(self);
  auto* base = reinterpret_cast<PyTypeObject*>(py::detail::get_internals().instance_base);
  base->tp_dealloc(self);
}

PyObject* AllocateUntracked(PyTypeObject* type, Py_ssize_t) {
  PyObject* self = PyObject_GC_New(PyObject, type);
  if (self != nullptr)
    std::memset(self + 1, 0, static_cast<std::size_t>(type->tp_basicsize) - sizeof(PyObject));
  return self;
}

void TrackIfItHasAttributes(PyObject* self) {
  if (DictOf(self) != nullptr && PyObject_GC_IsTracked(self) == 0) PyObject_GC_Track(self);
}
int SetAttributeOfUntracked(PyObject* self, PyObject* name, PyObject* value) {
  const int result = PyObject_GenericSetAttr(self, name, value);
  TrackIfItHasAttributes(self);
  return result;
}
PyObject* AttributesOfUntracked(PyObject* self, void* context) {
  PyObject* attributes = PyObject_GenericGetDict(self, context);
  TrackIfItHasAttributes(self);
  return attributes;
}

void Setup(PyTypeObject& type) {
  type.tp_flags |= Py_TPFLAGS_HAVE_GC;
  type.tp_traverse = &Traverse;
  type.tp_clear = &Clear;
  type.tp_dealloc = &Deallocate;
}

void SetUpAttributes(PyTypeObject& type, PyGetSetDef* dict) {
  type.tp_traverse = &TraverseWithDict;
  type.tp_clear = &ClearWithDict;
  type.tp_dictoffset = kDictOffset;
  type.tp_basicsize = kDictOffset + static_cast<Py_ssize_t>(sizeof(PyObject*));
  type.tp_getset = dict;
}

}  // namespace

py::custom_type_setup WithPatients() {
  return py::custom_type_setup([](PyHeapTypeObject* heap_type) { Setup(heap_type->ht_type); });
}

py::custom_type_setup WithPatients(void (*finalize)(PyObject*)) {
  return py::custom_type_setup([finalize](PyHeapTypeObject* heap_type) {
    Setup(heap_type->ht_type);
    heap_type->ht_type.tp_finalize = finalize;
  });
}

py::custom_type_setup WithAttributes() {
  return py::custom_type_setup([](PyHeapTypeObject* heap_type) {
    static PyGetSetDef dict[] = {
        {"__dict__", &PyObject_GenericGetDict, &PyObject_GenericSetDict, nullptr, nullptr},
        {nullptr, nullptr, nullptr, nullptr, nullptr}};
    Setup(heap_type->ht_type);
    SetUpAttributes(heap_type->ht_type, dict);
  });
}

void SetUpUntracked(PyHeapTypeObject* type) {
  static PyGetSetDef dict[] = {{"__dict__", &AttributesOfUntracked, nullptr, nullptr, nullptr},
                               {nullptr, nullptr, nullptr, nullptr, nullptr}};
  Setup(type->ht_type);
  SetUpAttributes(type->ht_type, dict);
  type->ht_type.tp_alloc = &AllocateUntracked;
  type->ht_type.tp_setattro = &SetAttributeOfUntracked;
}

void ClearAttributes(PyObject* self) { Py_CLEAR(DictOf(self)); }

void Keep(py::handle keeper, py::handle kept) { py::detail::add_patient(keeper.ptr(), kept.ptr()); }

}  // namespace lazuli::python
