// The rows of lazy/ops/functions as functions and methods of Python.
//
// For each row tools/generate_functions.py writes a function that loads the arguments and calls the
// library's, and a FunctionRow. Here is what they share.
#pragma once

#include <cstddef>
#include <initializer_list>
#include <span>
#include <string_view>
#include <tuple>
#include <utility>

#include "python/src/bind.h"

namespace lazuli::python {

using Slots = std::span<PyObject*>;

// A C++ argument from its slot, while the call lasts. Throws TypeError.
template <class T>
class Given {
 public:
  Given(const Signature& signature, Slots slots, std::size_t first) {
    loaded_.Load(signature, first, slots);
  }
  decltype(auto) get() { return loaded_.Pass(); }

 private:
  Loaded<T> loaded_;
};

struct ParameterRow {
  ParameterAdder add;
  const char* name;
  const char* fallback;  // as C++ writes it; "": required
};
// What out= may be.
struct OutRule {
  bool taken = false;  // there is one
  bool casts = false;  // of any dtype that holds the result, else of the result's
  bool apart = false;  // shares no memory with an operand, else it may be one
};
struct FunctionRow {
  const char* name;
  std::span<const ParameterRow> parameters;
  const char *result, *doc;
  PyObject* (*call)(const Signature&, Slots);
  OutRule out = {};                // as a function
  Signature* signature = nullptr;  // once it is bound
};

// What Python calls: sorts the arguments into slots; null with Python's error set if that or the
// call throws. `first` is the object of a method or null.
PyObject* CallRow(const FunctionRow& row, PyObject* first, PyObject* const* arguments, Py_ssize_t n,
                  PyObject* names) noexcept;
template <const FunctionRow& kRow>
PyObject* AsFunction(PyObject*, PyObject* const* arguments, Py_ssize_t n, PyObject* names) {
  return CallRow(kRow, nullptr, arguments, n, names);
}
template <const FunctionRow& kRow>
PyObject* AsMethod(PyObject* self, PyObject* const* arguments, Py_ssize_t n, PyObject* names) {
  return CallRow(kRow, self, arguments, n, names);
}

// The same of rows of one name: the first whose parameters fit the arguments is called.
using FunctionRows = std::span<FunctionRow* const>;
PyObject* CallOverloads(FunctionRows rows, PyObject* first, PyObject* const* arguments,
                        Py_ssize_t n, PyObject* names) noexcept;
template <const auto& kRows>
PyObject* AsOverloadedFunction(PyObject*, PyObject* const* arguments, Py_ssize_t n,
                               PyObject* names) {
  return CallOverloads(kRows, nullptr, arguments, n, names);
}
template <const auto& kRows>
PyObject* AsOverloadedMethod(PyObject* self, PyObject* const* arguments, Py_ssize_t n,
                             PyObject* names) {
  return CallOverloads(kRows, self, arguments, n, names);
}

// The type of results with these names, a tuple: torch.return_types.max in PyTorch.
PyTypeObject* NamedTuple(const char* function, std::initializer_list<const char*> fields);
template <class... T>
PyObject* ToNamedTuple(PyTypeObject* type, std::tuple<T...> values) {
  PyObject* result = PyStructSequence_New(type);
  if (result == nullptr) throw py::error_already_set();
  Py_ssize_t i = 0;
  std::apply(
      [&](auto&... value) {
        (PyStructSequence_SetItem(result, i++, ToPython(std::move(value)).release().ptr()), ...);
      },
      values);
  return result;
}
inline PyObject* ToNamedTuple(PyTypeObject* type, std::pair<Tensor, Tensor> values) {
  return ToNamedTuple(type, std::tuple(std::move(values.first), std::move(values.second)));
}

// Makes the row's function one of `module`, or of a module in it ("nn.functional").
void BindFunction(FunctionRow& row, _PyCFunctionFastWithKeywords function,
                  const py::module_& module, std::string_view name);
void BindFunction(FunctionRows rows, _PyCFunctionFastWithKeywords function,
                  const py::module_& module, std::string_view name);
// Makes it a method of Tensor.
void BindMethod(FunctionRow& row, _PyCFunctionFastWithKeywords function);
void BindMethod(FunctionRows rows, _PyCFunctionFastWithKeywords function);

// All of them; generated.
void BindRows(const py::module_& module);

}  // namespace lazuli::python
