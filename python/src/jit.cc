// What lazuli.jit makes compiled functions of: calls that are replayed, guards that are cheap, and
// what a function does on the host.
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "lazuli/compile.h"
#include "lazuli/internal/host_action.h"
#include "lazy/tensor/watch.h"
#include "python/src/arguments.h"
#include "python/src/bindings.h"
#include "python/src/caller.h"
#include "python/src/gil.h"
#include "python/src/stl.h"
#include "python/src/tensor_object.h"

namespace lazuli::python {
namespace {

using lazuli::internal::CallCache;

// A call of Python's, as a schedule's step.
class CallAgain final : public lazuli::internal::HostAction {
 public:
  CallAgain(py::object actor, py::object call) : actor_(std::move(actor)), call_(std::move(call)) {}
  ~CallAgain() override {
    const AcquiredGil gil;
    actor_.release().dec_ref();
    call_.release().dec_ref();
  }
  CallAgain(const CallAgain&) = delete;
  CallAgain& operator=(const CallAgain&) = delete;
  void TakeNumbers() override {}
  void Commit() override {
    const AcquiredGil gil;
    call_();
  }
  const void* actor() const override { return actor_.ptr(); }

 private:
  py::object actor_, call_;
};

std::vector<Tensor> TensorsOf(const py::handle& list) {
  std::vector<Tensor> tensors;
  for (const py::handle item : py::reinterpret_borrow<py::iterable>(list)) {
    const Tensor* const tensor = AsTensor(item.ptr());
    if (tensor == nullptr) throw py::type_error("a compiled function's leaves are tensors");
    tensors.push_back(*tensor);
  }
  return tensors;
}

// The results of a call with these tensors, as a list; `function` gives a list, too.
py::list Call(const CallCache& cache, const py::list& arguments,
              const std::vector<std::int64_t>& donated, const py::function& function) {
  const Caller caller;
  const std::vector<Tensor> tensors = TensorsOf(arguments);
  std::vector<Tensor> results;
  {
    const ReleasedGil release;
    results = cache.Call(tensors, {}, donated, [&] {
      const AcquiredGil gil;
      return TensorsOf(function());
    });
  }
  py::list list(results.size());
  for (std::size_t i = 0; i < results.size(); ++i)
    PyList_SET_ITEM(list.ptr(), static_cast<Py_ssize_t>(i),
                    TensorObject(std::move(results[i])).release().ptr());
  return list;
}

// Whether the items of a list, tuple or dict are these, in this order: the same objects.
bool AreItems(PyObject* container, PyObject* keys, PyObject* values) {
  const Py_ssize_t count = PyTuple_GET_SIZE(values);
  if (PyDict_Check(container)) {
    if (PyDict_GET_SIZE(container) != count) return false;
    PyObject *key = nullptr, *value = nullptr;
    Py_ssize_t position = 0, i = 0;
    while (PyDict_Next(container, &position, &key, &value)) {
      if (i >= count || value != PyTuple_GET_ITEM(values, i) || key != PyTuple_GET_ITEM(keys, i))
        return false;
      ++i;
    }
    return true;
  }
  if (PyList_Check(container)) {
    if (PyList_GET_SIZE(container) != count) return false;
    for (Py_ssize_t i = 0; i < count; ++i) {
      if (PyList_GET_ITEM(container, i) != PyTuple_GET_ITEM(values, i)) return false;
    }
    return true;
  }
  return PyCell_Check(container) && PyCell_GET(container) == PyTuple_GET_ITEM(values, 0);
}

// Whether a dict has these values under these keys, beside others.
bool HasItems(PyObject* dict, PyObject* keys, PyObject* values) {
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(keys); ++i) {
    if (PyDict_GetItemWithError(dict, PyTuple_GET_ITEM(keys, i)) != PyTuple_GET_ITEM(values, i))
      return false;
  }
  return true;
}

// The number of the first of the guards, (container, keys, values, whether these are all), that does
// not hold; -1: all hold.
Py_ssize_t FirstChanged(const py::list& guards) {
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(guards.ptr()); ++i) {
    PyObject* const guard = PyList_GET_ITEM(guards.ptr(), i);
    PyObject* const container = PyTuple_GET_ITEM(guard, 0);
    PyObject *const keys = PyTuple_GET_ITEM(guard, 1), *const values = PyTuple_GET_ITEM(guard, 2);
    const bool is_all = PyTuple_GET_ITEM(guard, 3) == Py_True;
    if (!(is_all ? AreItems(container, keys, values) : HasItems(container, keys, values))) return i;
  }
  return -1;
}

}  // namespace

void BindJit(py::module_& module) {
  py::class_<CallCache>(module, "_CallCache")
      .def(py::init([](const std::string& name) {
        const Caller caller;
        return std::make_unique<CallCache>(name, SourceLocation::current());
      }))
      .def("call", &Call)
      .def("refuse", &CallCache::Refuse)
      .def("forget", &CallCache::Forget)
      .def("explain", &CallCache::Explain)
      .def("replays", &CallCache::replays);
  module.def("_first_changed", &FirstChanged);
  // Whether a compiled function is being recorded on this thread.
  module.def("_is_watched", &lazuli::internal::HostActionScope::IsWatched);
  module.def("_refuse_replay", [](const std::string& why) {
    const Caller caller;
    if (lazy::Watch* const watch = lazy::Watch::Current()) watch->Refuse(why);
  });
  // A replay calls `call` at this place; `actor` is what acts.
  module.def("_call_again", [](const py::object& actor, const py::object& call) {
    const lazuli::internal::HostActionScope acts(std::make_shared<CallAgain>(actor, call));
  });
}

}  // namespace lazuli::python
