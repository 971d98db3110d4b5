#include "python/src/tensor_object.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <utility>

#include "cpp_api/src/facade.h"
#include "python/src/cycles.h"

namespace lazuli::python {

PyTypeObject* tensor_type = nullptr;

namespace {

using py::detail::instance;
using Holder = std::unique_ptr<Tensor>;  // py::class_<Tensor>'s

// What pybind11 has room for in an object: the value's address, its holder, and a word more for
// larger holders, which is the object's place in the list.
enum Field : std::uint8_t { kValue, kHolder, kPlace };
static_assert(sizeof(instance::simple_value_holder) == 3 * sizeof(void*));
static_assert(sizeof(Holder) == sizeof(void*));

// Never destroyed: objects outlive the module at the end of the process.
std::vector<instance*>& List() {
  static auto* list = new std::vector<instance*>;
  return *list;
}
std::size_t PlaceOf(const instance& object) {
  return reinterpret_cast<std::uintptr_t>(object.simple_value_holder[kPlace]);
}
void SetPlace(instance& object, std::size_t place) {
  object.simple_value_holder[kPlace] = reinterpret_cast<void*>(place);
}
bool IsListed(const instance& object) {
  return object.simple_layout && !object.simple_instance_registered &&
         PlaceOf(object) < List().size() && List()[PlaceOf(object)] == &object;
}

// The tensor of an object; null while it is made.
Tensor* TensorOf(instance& object) {
  void** const fields =
      object.simple_layout ? object.simple_value_holder : object.nonsimple.values_and_holders;
  return fields == nullptr ? nullptr : static_cast<Tensor*>(fields[kValue]);
}

// An object that goes is no longer its tensor's.
void LetGo(PyObject* self) {
  const Tensor* const tensor = TensorOf(*reinterpret_cast<instance*>(self));
  if (tensor == nullptr || !tensor->defined()) return;
  lazy::TensorImpl* const impl = TensorAccess::Impl(*tensor);
  if (impl->wrapper() == self) impl->set_wrapper(nullptr);
}

destructor general_deallocate = nullptr;

void DeallocateGenerally(PyObject* self) {
  LetGo(self);
  general_deallocate(self);
}

void Deallocate(PyObject* self) {
  auto& object = *reinterpret_cast<instance*>(self);
  if (!IsListed(object)) return DeallocateGenerally(self);
  PyObject_GC_UnTrack(self);
  LetGo(self);
  instance* const last = List().back();
  List()[PlaceOf(object)] = last;
  SetPlace(*last, PlaceOf(object));
  List().pop_back();
  {
    const py::error_scope kept;  // the destructors may run Python
    ClearAttributes(self);
    reinterpret_cast<Holder*>(&object.simple_value_holder[kHolder])->~Holder();
  }
  if (object.weakrefs != nullptr) PyObject_ClearWeakRefs(self);
  if (object.has_patients) py::detail::clear_patients(self);
  PyTypeObject* const type = Py_TYPE(self);
  type->tp_free(self);
  Py_DECREF(type);
}

}  // namespace

void BecomeTensorObject(py::handle object) {
  const Tensor* const tensor = TensorOf(*reinterpret_cast<instance*>(object.ptr()));
  if (tensor->defined()) TensorAccess::Impl(*tensor)->set_wrapper(object.ptr());
}

py::object TensorObject(Tensor tensor) {
  lazy::TensorImpl* const impl = TensorAccess::Impl(tensor);
  if (impl->wrapper() != nullptr)
    return py::reinterpret_borrow<py::object>(static_cast<PyObject*>(impl->wrapper()));
  auto self = py::reinterpret_steal<py::object>(tensor_type->tp_alloc(tensor_type, 0));
  if (!self) throw py::error_already_set();
  auto& object = *reinterpret_cast<instance*>(self.ptr());
  object.simple_layout = true;
  auto value = std::make_unique<Tensor>(std::move(tensor));
  List().push_back(&object);
  SetPlace(object, List().size() - 1);
  object.simple_value_holder[kValue] = value.get();
  new (&object.simple_value_holder[kHolder]) Holder(std::move(value));
  object.owned = object.simple_holder_constructed = true;
  impl->set_wrapper(self.ptr());
  return self;
}

const std::vector<instance*>& TensorObjects() { return List(); }

void SetUpTensorObjects(PyHeapTypeObject* type) {
  SetUpUntracked(type);
  general_deallocate = std::exchange(type->ht_type.tp_dealloc, &Deallocate);
}

void SetUpDerivedTensorObjects(PyHeapTypeObject* type) {
  SetUpUntracked(type);
  type->ht_type.tp_dealloc = &DeallocateGenerally;
}

}  // namespace lazuli::python
