// References to Python's objects in objects of C++, which may be dropped anywhere.
#pragma once

#include <memory>
#include <utility>

#include <pybind11/pybind11.h>

#include "python/src/graveyard.h"

namespace lazuli::python {

class HeldObject {
 public:
  explicit HeldObject(pybind11::object object) : object_(object.release().ptr()) {}
  ~HeldObject() { Graveyard::Get().Bury(object_); }
  HeldObject(const HeldObject&) = delete;
  HeldObject& operator=(const HeldObject&) = delete;
  pybind11::object get() const { return pybind11::reinterpret_borrow<pybind11::object>(object_); }

 private:
  PyObject* object_;
};
using HeldObjectPtr = std::shared_ptr<HeldObject>;
inline HeldObjectPtr HoldObject(pybind11::object object) {
  return std::make_shared<HeldObject>(std::move(object));
}

}  // namespace lazuli::python
