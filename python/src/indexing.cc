// x[1, ..., 2:8:2, None] and assignment to it: Python's entries as those of lazuli/indexing.h.
#include "lazuli/indexing.h"

#include <string>
#include <vector>

#include <pybind11/pybind11.h>

#include "python/src/arguments.h"
#include "python/src/bindings.h"
#include "python/src/errors.h"

namespace lazuli::python {
namespace {

// A tensor, sequence or array: of positions, or a mask.
bool IsArray(py::handle entry) {
  return AsTensor(entry.ptr()) != nullptr || PyList_Check(entry.ptr()) ||
         PyTuple_Check(entry.ptr()) ||
         std::string_view(Py_TYPE(entry.ptr())->tp_name) == "numpy.ndarray";
}

Index ToIndex(py::handle entry) {
  std::int64_t i = 0;
  if (entry.is_none()) return NewAxis{};
  if (entry.ptr() == Py_Ellipsis) return Ellipsis{};
  if (PySlice_Check(entry.ptr())) {
    Py_ssize_t start, stop, step;
    if (PySlice_Unpack(entry.ptr(), &start, &stop, &step) < 0) throw py::error_already_set();
    return Slice{start, stop, step};
  }
  // A sequence of nothing is one of positions.
  if ((PyList_Check(entry.ptr()) || PyTuple_Check(entry.ptr())) &&
      PySequence_Fast_GET_SIZE(entry.ptr()) == 0)
    return zeros({0}, kInt64);
  if (PyRange_Check(entry.ptr()))
    return ToTensor(py::list(py::reinterpret_borrow<py::object>(entry)));
  if (IsArray(entry)) return ToTensor(entry);  // before integers: an array might be one, too
  if (PyBool_Check(entry.ptr())) return entry.ptr() == Py_True;
  if (LoadInteger(entry.ptr(), i)) return i;
  if (PyFloat_Check(entry.ptr())) {
    throw Error(
        ErrorCode::kOutOfRange,
        "index: takes integers, slices, None, one ... and an array of positions, not float");
  }
  ThrowTypeError("index: takes integers, slices, None, one ... and an array of positions, not " +
                 std::string(Py_TYPE(entry.ptr())->tp_name));
}

// A list that stands for a tuple, as PyTorch has it: a short one that holds more than numbers.
bool IsTuple(py::handle index) {
  if (PyTuple_Check(index.ptr())) return true;
  if (!PyList_Check(index.ptr()) || PyList_GET_SIZE(index.ptr()) >= 32) return false;
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(index.ptr()); ++i) {
    PyObject* const entry = PyList_GET_ITEM(index.ptr(), i);
    if (entry == Py_None || entry == Py_Ellipsis || PySlice_Check(entry) ||
        PySequence_Check(entry) || AsTensor(entry) != nullptr)
      return true;
  }
  return false;
}

std::vector<Index> ToIndices(py::handle index) {
  if (!IsTuple(index)) return {ToIndex(index)};
  std::vector<Index> indices;
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(index.ptr()); ++i)
    indices.push_back(ToIndex(PySequence_Fast_GET_ITEM(index.ptr(), i)));
  return indices;
}

// Of a list, whose dtype nobody chose.
Tensor InTypeOf(const Tensor& x, const Tensor& list) {
  const auto is_complex = [](DType t) { return t == DType::kC64 || t == DType::kC128; };
  const bool cuts = is_complex(list.dtype()) && !is_complex(x.dtype());
  return cuts ? list : list.to(x.dtype());
}

}  // namespace

Tensor GetItem(const Tensor& x, py::handle index) { return lazuli::index(x, ToIndices(index)); }

void SetItem(Tensor& x, py::handle index, py::handle value, bool accumulate) {
  const std::vector<Index> indices = ToIndices(index);
  if (const std::optional<Scalar> number = LoadScalar(value.ptr()))
    index_put_(x, indices, *number, accumulate);
  else if (AsTensor(value.ptr()) != nullptr)
    index_put_(x, indices, *AsTensor(value.ptr()), accumulate);
  else
    index_put_(x, indices, InTypeOf(x, ToTensor(value)), accumulate);
}

}  // namespace lazuli::python
