// Indexing as NumPy's: integers, slices, None and an ellipsis, and arrays of positions side by
// side, whose dims take the place of the dims that they pick from. Results have their own memory,
// as those of all shape functions; assignment writes through, and takes a mask, too.
#include <optional>
#include <string>
#include <vector>

#include <pybind11/pybind11.h>

#include "cpp_api/src/facade.h"
#include "lazuli/ops.h"
#include "lazy/ops/functions.h"
#include "python/src/arguments.h"
#include "python/src/bindings.h"
#include "python/src/errors.h"

namespace lazuli::python {
namespace {

// What an index takes of a tensor, and the dims of the result.
struct Selection {
  Dims starts, limits, strides;  // of each dim of the tensor
  Dims dims;  // of the result: without those an integer picks, with those of None
  Dims kept;  // of the slice, before that
  std::vector<lazy::Tensor> positions;  // along dims `picked`, `picked` + 1, ... of the result
  std::size_t picked = 0;

  std::int64_t Count(std::size_t d) const {
    return starts[d] >= limits[d] ? 0 : (limits[d] - starts[d] + strides[d] - 1) / strides[d];
  }
};

std::vector<py::object> Entries(py::handle index) {
  if (!PyTuple_Check(index.ptr())) return {py::reinterpret_borrow<py::object>(index)};
  std::vector<py::object> entries;
  for (const py::handle& entry : py::reinterpret_borrow<py::tuple>(index))
    entries.push_back(py::reinterpret_borrow<py::object>(entry));
  return entries;
}

void AddWhole(Selection& s, std::int64_t size) {
  s.starts.push_back(0);
  s.limits.push_back(size);
  s.strides.push_back(1);
  s.dims.push_back(size);
  s.kept.push_back(size);
}

void AddInteger(Selection& s, std::int64_t i, std::int64_t size) {
  if (i < -size || i >= size) {
    lazy::ThrowRecordError("index", ir::OutOfRange("index ", i, " is out of range for dim ",
                                                   s.starts.size(), " of size ", size));
  }
  s.starts.push_back(i < 0 ? i + size : i);
  s.limits.push_back(s.starts.back() + 1);
  s.strides.push_back(1);
  s.kept.push_back(1);
}

void AddSlice(Selection& s, py::handle slice, std::int64_t size) {
  Py_ssize_t start, stop, step;
  if (PySlice_Unpack(slice.ptr(), &start, &stop, &step) < 0) throw py::error_already_set();
  if (step < 1) {
    lazy::ThrowRecordError("index", ir::InvalidArgument("the step of a slice must be positive, is ",
                                                        step, "; flip() reverses a dim"));
  }
  const Py_ssize_t count = PySlice_AdjustIndices(size, &start, &stop, step);
  s.starts.push_back(start);
  s.limits.push_back(std::max(start, stop));
  s.strides.push_back(step);
  s.dims.push_back(count);
  s.kept.push_back(count);
}

// A tensor, list or array of positions.
bool IsArray(const py::object& entry) {
  return AsTensor(entry.ptr()) != nullptr || PyList_Check(entry.ptr()) ||
         std::string_view(Py_TYPE(entry.ptr())->tp_name) == "numpy.ndarray";
}

void AddPositions(Selection& s, const py::object& entry, std::int64_t size) {
  Tensor positions = ToTensor(entry);
  if (positions.dtype() == kBool) {
    lazy::ThrowRecordError(
        "index", ir::InvalidArgument("the dims of what a mask picks depend on its values; "
                                     "where(mask, x, other) keeps x's"));
  }
  if (s.positions.empty()) s.picked = s.dims.size();
  if (s.dims.size() != s.picked + s.positions.size()) {
    lazy::ThrowRecordError("index",
                           ir::Unimplemented("arrays of positions with other entries in between"));
  }
  s.positions.push_back(TensorAccess::Unwrap(positions));
  AddWhole(s, size);
}

Selection Select(const Tensor& x, py::handle index) {
  const Dims sizes = x.sizes();
  const std::vector<py::object> entries = Entries(index);
  std::size_t picks = 0;
  for (const py::object& e : entries) picks += !e.is_none() && e.ptr() != Py_Ellipsis;
  if (picks > sizes.size()) {
    lazy::ThrowRecordError("index",
                           ir::OutOfRange(picks, " indices for a tensor of rank ", sizes.size()));
  }
  Selection s;
  bool dots = false;
  for (const py::object& e : entries) {
    std::int64_t i = 0;
    if (e.is_none()) {
      s.dims.push_back(1);
    } else if (e.ptr() == Py_Ellipsis && !dots) {
      dots = true;
      for (std::size_t rest = sizes.size() - picks; rest > 0; --rest)
        AddWhole(s, sizes[s.starts.size()]);
    } else if (PySlice_Check(e.ptr())) {
      AddSlice(s, e, sizes[s.starts.size()]);
    } else if (IsArray(e)) {  // before integers: an array might be one, too
      AddPositions(s, e, sizes[s.starts.size()]);
    } else if (!PyBool_Check(e.ptr()) && LoadInteger(e.ptr(), i)) {
      AddInteger(s, i, sizes[s.starts.size()]);
    } else {
      ThrowTypeError(
          "index: takes integers, slices, None, one ... and an array of positions, not " +
          std::string(Py_TYPE(e.ptr())->tp_name));
    }
  }
  while (s.starts.size() < sizes.size()) AddWhole(s, sizes[s.starts.size()]);
  return s;
}

// The value as a tensor of the slice's dims and x's dtype.
lazy::Tensor ValueFor(const lazy::Tensor& x, const Selection& s, py::handle value) {
  if (const std::optional<Scalar> number = LoadScalar(value.ptr()))
    return lazy::Full(s.kept, TensorAccess::Slot(*number, x.dtype()), x.device());
  const lazy::Tensor v = lazy::To(TensorAccess::Unwrap(ToTensor(value)), x.dtype());
  return lazy::Reshape(lazy::BroadcastTo(v, s.dims), s.kept);
}

// The value where the mask is true.
lazy::Tensor Masked(const Tensor& x, const Tensor& mask, py::handle value) {
  Dims dims = mask.sizes();
  dims.resize(static_cast<std::size_t>(std::max(x.dim(), mask.dim())), 1);
  const lazy::Tensor in = TensorAccess::Unwrap(x),
                     where = lazy::Reshape(TensorAccess::Unwrap(mask), dims);
  Selection all;
  for (const std::int64_t size : x.sizes()) AddWhole(all, size);
  return lazy::Where(where, ValueFor(in, all, value), in);
}

// What the arrays of positions pick of the rest: of the dims that they index as of one.
lazy::Tensor Pick(const lazy::Tensor& x, const Selection& s) {
  const auto first = s.dims.begin() + static_cast<std::ptrdiff_t>(s.picked);
  const auto last = first + static_cast<std::ptrdiff_t>(s.positions.size());
  lazy::Tensor index, bad;
  std::int64_t total = 1;
  for (std::size_t i = 0; i < s.positions.size(); ++i) {
    const lazy::Tensor& given = s.positions[i];
    if (!ir::IsIntegral(given.dtype())) {
      lazy::ThrowRecordError(
          "index", ir::InvalidArgument("positions must be integers, are ", given.shape()));
    }
    const std::int64_t n = first[static_cast<std::ptrdiff_t>(i)];
    const lazy::Tensor p = lazy::To(given, ir::DType::kS64);
    const auto number = [&](std::int64_t v) {
      return lazy::Constant(static_cast<double>(v), p.dtype());
    };
    const lazy::Tensor wrapped = lazy::Where(lazy::Lt(p, number(0)), lazy::Add(p, number(n)), p);
    const lazy::Tensor out = lazy::LogicalOr(lazy::Lt(p, number(-n)), lazy::Ge(p, number(n)));
    index = i == 0 ? wrapped : lazy::Add(lazy::Mul(index, number(n)), wrapped);
    bad = i == 0 ? out : lazy::LogicalOr(bad, out);
    total *= n;
  }
  // What is out of range stays so, for the run to report.
  index = s.positions.size() == 1
              ? lazy::Where(bad, lazy::To(s.positions[0], ir::DType::kS64), index)
              : lazy::Where(bad, lazy::Constant(-1, index.dtype()), index);
  Dims flat(s.dims.begin(), first), dims = flat;
  flat.push_back(total);
  flat.insert(flat.end(), last, s.dims.end());
  const auto picked = index.shape().dims();
  dims.insert(dims.end(), picked.begin(), picked.end());
  dims.insert(dims.end(), last, s.dims.end());
  return lazy::Reshape(
      lazy::IndexSelect(lazy::Reshape(x, flat), static_cast<std::int64_t>(s.picked),
                        lazy::Flatten(index, 0, -1)),
      dims);
}

}  // namespace

Tensor GetItem(const Tensor& x, py::handle index) {
  return CallTensor(SourceLocation::current(), [&] {
    const Selection s = Select(x, index);
    const lazy::Tensor in = TensorAccess::Unwrap(x);
    const lazy::Tensor slice =
        lazy::Reshape(lazy::Slice(in, s.starts, s.limits, s.strides), s.dims);
    return s.positions.empty() ? slice : Pick(slice, s);
  });
}

// x where the slice is not, and the value where it is: the value padded to x's dims, with a mask of
// ones padded likewise.
void SetItem(Tensor& x, py::handle index, py::handle value) {
  const Tensor result = CallTensor(SourceLocation::current(), [&] {
    if (const Tensor* mask = AsTensor(index.ptr()); mask != nullptr && mask->dtype() == kBool)
      return Masked(x, *mask, value);
    const Selection s = Select(x, index);
    if (!s.positions.empty())
      lazy::ThrowRecordError("index", ir::Unimplemented("assignment to an array of positions"));
    const lazy::Tensor in = TensorAccess::Unwrap(x);
    const lazy::Tensor v = ValueFor(in, s, value);
    Dims high, interior;
    for (std::size_t d = 0; d < s.starts.size(); ++d) {
      const std::int64_t n = s.Count(d);
      if (n == 0) return in;
      high.push_back(in.dim(static_cast<std::int64_t>(d)) - s.starts[d] -
                     ((n - 1) * s.strides[d] + 1));
      interior.push_back(s.strides[d] - 1);
    }
    const lazy::Tensor ones =
        lazy::FullConstant(ir::Shape(ir::DType::kPred, s.kept), 1, in.device());
    return lazy::Where(lazy::PadZeros(ones, s.starts, high, interior),
                       lazy::PadZeros(v, s.starts, high, interior), in);
  });
  x.copy_(result);
}

}  // namespace lazuli::python
