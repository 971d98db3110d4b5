// References to Python's objects that a thread has given up without the interpreter's lock, or under
// its context's lock, which the object's destructor may want: dropped by Python when it next can.
#pragma once

#include <atomic>
#include <mutex>
#include <vector>

#include <Python.h>

#include "lazy/tensor/context.h"

namespace lazuli::python {

class Graveyard {
 public:
  static Graveyard& Get() {
    static auto* graveyard = new Graveyard;  // outlives every thread that may bury something
    return *graveyard;
  }
  void Bury(PyObject* object) {
    if (closed_.load()) return;  // the interpreter is going: nothing is dropped any more
    if (PyGILState_Check() != 0 && !lazy::Context::CurrentIsLocked()) {
      Py_DECREF(object);
      return;
    }
    const std::lock_guard lock(mu_);
    objects_.push_back(object);
    if (objects_.size() == 1) Py_AddPendingCall([](void*) { return Get().Drop(), 0; }, nullptr);
  }
  void Close() { closed_ = true; }

 private:
  void Drop() {
    std::vector<PyObject*> objects;
    {
      const std::lock_guard lock(mu_);
      objects.swap(objects_);
    }
    for (PyObject* object : objects) Py_DECREF(object);
  }
  std::atomic<bool> closed_{false};
  std::mutex mu_;
  std::vector<PyObject*> objects_;
};

}  // namespace lazuli::python
