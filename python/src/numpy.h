// NumPy arrays as memory.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>

#include <pybind11/pybind11.h>

#include "lazuli/tensor.h"

namespace lazuli::python {

namespace py = pybind11;

// The elements of an array, row-major, aligned and in the machine's byte order.
struct ArrayView {
  py::object array;  // whose memory it is: the object, or a copy if that is laid out otherwise
  DType dtype = kFloat32;
  Dims dims = {};
  const void* data = nullptr;
  std::size_t bytes = 0;
};
// Throws TypeError, "op: ...", if there is no such dtype.
ArrayView ViewArray(const py::object& object, const char* op);

// A read-only array over memory that `owner` keeps; strides in bytes, none for row-major order.
py::object MakeArray(DType dtype, Dims dims, const void* data, std::shared_ptr<const void> owner,
                     std::optional<Dims> strides = {});

py::object ToNumPy(const Tensor& x);

}  // namespace lazuli::python
