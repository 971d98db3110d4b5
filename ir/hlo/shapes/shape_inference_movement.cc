#include <algorithm>

#include "ir/hlo/shapes/shape_inference_internal.h"

namespace lazuli::hlo::internal {
namespace {

absl::Status CheckCount(const Inference& in, std::string_view what, std::size_t count,
                        const Shape& operand) {
  if (static_cast<int64_t>(count) == operand.rank()) return absl::OkStatus();
  return in.Error(count, " ", what, " for ", operand);
}

// Start indices: one integer scalar a dimension, or (as older text has it) one vector.
absl::Status CheckStarts(const Inference& in, std::size_t first, int64_t rank) {
  const auto starts = in.operands.subspan(first);
  if (starts.size() == 1 && starts[0]->rank() == 1 && IsIntegral(starts[0]->dtype()) &&
      starts[0]->dim(0) == rank) {
    return absl::OkStatus();
  }
  if (static_cast<int64_t>(starts.size()) != rank) {
    return in.Error(starts.size(), " start indices for ", in.operand(0));
  }
  for (const Shape* start : starts) {
    if (!start->IsScalar() || !IsIntegral(start->dtype())) {
      return in.Error("start index ", *start, " is not an integer scalar");
    }
    if (start->dtype() != starts[0]->dtype()) {
      return in.Error("start indices differ in type: ", *starts[0], " and ", *start);
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Shape> InferDeclared(const Inference& in) {
  if (in.declared == nullptr) return in.Error("the result's shape must be declared");
  return *in.declared;
}

absl::StatusOr<Shape> InferParameter(const Inference& in) {
  if (in.attrs_as<ParameterAttrs>().number < 0)
    return in.Error("number ", in.attrs_as<ParameterAttrs>().number);
  return InferDeclared(in);
}

absl::StatusOr<Shape> InferConstant(const Inference& in) {
  const auto& value = in.attrs_as<ConstantAttrs>().value;
  if (value == nullptr) return in.Error("has no value");
  return value->shape();
}

absl::StatusOr<Shape> InferIota(const Inference& in) {
  LAZULI_RETURN_IF_ERROR(in.DeclaredArray());
  const int64_t dimension = in.attrs_as<IotaAttrs>().iota_dimension;
  if (dimension < 0 || dimension >= in.declared->rank()) {
    return in.Error("iota_dimension=", dimension, " is out of range for ", *in.declared);
  }
  if (in.declared->dtype() == DType::kPred)
    return in.Error("counts in numbers, not ", *in.declared);
  return *in.declared;
}

absl::StatusOr<Shape> InferBroadcast(const Inference& in) {
  LAZULI_RETURN_IF_ERROR(in.ArrayOperands());
  LAZULI_RETURN_IF_ERROR(in.DeclaredArray());
  const Shape& from = in.operand(0);
  const Shape& to = *in.declared;
  const Dims& dims = in.attrs_as<DimensionsAttrs>().dimensions;
  LAZULI_RETURN_IF_ERROR(CheckCount(in, "dimensions", dims.size(), from));
  LAZULI_RETURN_IF_ERROR(in.CheckDims("dimensions", dims, to.rank()));
  if (from.dtype() != to.dtype()) return in.Error("changes no element type: ", from, " to ", to);
  for (int64_t i = 0; i < from.rank(); ++i) {
    if (from.dim(i) != to.dim(dims[static_cast<std::size_t>(i)])) {
      return in.Error("dimension ", i, " of ", from, " is not dimension ",
                      dims[static_cast<std::size_t>(i)], " of ", to);
    }
  }
  return to;
}

absl::StatusOr<Shape> InferTranspose(const Inference& in) {
  LAZULI_RETURN_IF_ERROR(in.ArrayOperands());
  const Shape& x = in.operand(0);
  const Dims& permutation = in.attrs_as<DimensionsAttrs>().dimensions;
  LAZULI_RETURN_IF_ERROR(CheckCount(in, "dimensions", permutation.size(), x));
  LAZULI_RETURN_IF_ERROR(in.CheckDims("dimensions", permutation, x.rank()));
  Dims dims;
  for (int64_t d : permutation) dims.push_back(x.dim(d));
  return Shape(x.dtype(), dims);
}

absl::StatusOr<Shape> InferReverse(const Inference& in) {
  LAZULI_RETURN_IF_ERROR(in.ArrayOperands());
  LAZULI_RETURN_IF_ERROR(
      in.CheckDims("dimensions", in.attrs_as<DimensionsAttrs>().dimensions, in.operand(0).rank()));
  return WithoutLayout(in.operand(0));
}

absl::StatusOr<Shape> InferReshape(const Inference& in) {
  if (in.operands.empty()) return in.Error("has no operand");
  LAZULI_RETURN_IF_ERROR(in.ArrayOperands());
  LAZULI_RETURN_IF_ERROR(in.DeclaredArray());
  const Shape& x = in.operand(0);
  if (x.dtype() != in.declared->dtype())
    return in.Error("changes no element type: ", x, " to ", *in.declared);
  if (x.num_elements() != in.declared->num_elements()) {
    return in.Error("keeps the number of elements: ", x, " to ", *in.declared);
  }
  return *in.declared;
}

absl::StatusOr<Shape> InferBitcast(const Inference& in) {
  LAZULI_RETURN_IF_ERROR(in.ArrayOperands());
  LAZULI_RETURN_IF_ERROR(in.DeclaredArray());
  if (in.operand(0).byte_size() != in.declared->byte_size()) {
    return in.Error("keeps the bytes: ", in.operand(0), " to ", *in.declared);
  }
  return *in.declared;
}

absl::StatusOr<Shape> InferConcatenate(const Inference& in) {
  if (in.operands.empty()) return in.Error("has no operand");
  LAZULI_RETURN_IF_ERROR(in.ArrayOperands());
  const Shape& first = in.operand(0);
  const Dims& dimensions = in.attrs_as<DimensionsAttrs>().dimensions;
  if (dimensions.size() != 1)
    return in.Error("needs one dimension, got {", Join(dimensions, ","), "}");
  LAZULI_RETURN_IF_ERROR(in.CheckDims("dimensions", dimensions, first.rank()));
  const int64_t along = dimensions[0];
  Dims dims(first.dims().begin(), first.dims().end());
  for (std::size_t i = 1; i < in.operand_count(); ++i) {
    const Shape& x = in.operand(i);
    bool same = x.dtype() == first.dtype() && x.rank() == first.rank();
    for (int64_t d = 0; same && d < x.rank(); ++d) same = d == along || x.dim(d) == first.dim(d);
    if (!same)
      return in.Error("operands differ outside dimension ", along, ": ", first, " and ", x);
    dims[static_cast<std::size_t>(along)] += x.dim(along);
  }
  return in.Array(first.dtype(), dims);
}

absl::StatusOr<Shape> InferSlice(const Inference& in) {
  LAZULI_RETURN_IF_ERROR(in.ArrayOperands());
  const Shape& x = in.operand(0);
  const auto& [starts, limits, strides] = in.attrs_as<SliceAttrs>();
  LAZULI_RETURN_IF_ERROR(CheckCount(in, "starts", starts.size(), x));
  LAZULI_RETURN_IF_ERROR(CheckCount(in, "limits", limits.size(), x));
  LAZULI_RETURN_IF_ERROR(CheckCount(in, "strides", strides.size(), x));
  Dims dims;
  for (std::size_t d = 0; d < starts.size(); ++d) {
    if (starts[d] < 0 || limits[d] < starts[d] || limits[d] > x.dims()[d]) {
      return in.Error("[", starts[d], ":", limits[d], "] is out of range for dimension ", d, " of ",
                      x);
    }
    if (strides[d] < 1)
      return in.Error("stride ", strides[d], " of dimension ", d, " is not positive");
    const int64_t length = limits[d] - starts[d];
    dims.push_back(length == 0 ? 0 : (length - 1) / strides[d] + 1);
  }
  return Shape(x.dtype(), dims);
}

absl::StatusOr<Shape> InferDynamicSlice(const Inference& in) {
  if (in.operands.empty()) return in.Error("has no operand");
  LAZULI_RETURN_IF_ERROR(in.ArrayOperands());
  const Shape& x = in.operand(0);
  const Dims& sizes = in.attrs_as<DynamicSliceAttrs>().dynamic_slice_sizes;
  LAZULI_RETURN_IF_ERROR(CheckStarts(in, 1, x.rank()));
  LAZULI_RETURN_IF_ERROR(CheckCount(in, "dynamic_slice_sizes", sizes.size(), x));
  for (std::size_t d = 0; d < sizes.size(); ++d) {
    if (sizes[d] < 0 || sizes[d] > x.dims()[d]) {
      return in.Error("size ", sizes[d], " is out of range for dimension ", d, " of ", x);
    }
  }
  return Shape(x.dtype(), sizes);
}

absl::StatusOr<Shape> InferDynamicUpdateSlice(const Inference& in) {
  if (in.operand_count() < 2) return in.Error("takes an operand, an update and start indices");
  LAZULI_RETURN_IF_ERROR(in.ArrayOperands());
  const Shape& x = in.operand(0);
  const Shape& update = in.operand(1);
  bool fits = update.dtype() == x.dtype() && update.rank() == x.rank();
  for (int64_t d = 0; fits && d < x.rank(); ++d) fits = update.dim(d) <= x.dim(d);
  if (!fits) return in.Error("update ", update, " does not fit into ", x);
  LAZULI_RETURN_IF_ERROR(CheckStarts(in, 2, x.rank()));
  return WithoutLayout(x);
}

absl::StatusOr<Shape> InferPad(const Inference& in) {
  LAZULI_RETURN_IF_ERROR(in.ArrayOperands());
  const Shape& x = in.operand(0);
  const Shape& value = in.operand(1);
  if (!value.IsScalar() || value.dtype() != x.dtype()) {
    return in.Error("padding value ", value, " is not a scalar of the type of ", x);
  }
  const auto& [low, high, interior] = in.attrs_as<PadAttrs>();
  LAZULI_RETURN_IF_ERROR(CheckCount(in, "paddings", low.size(), x));
  LAZULI_RETURN_IF_ERROR(CheckCount(in, "paddings", high.size(), x));
  LAZULI_RETURN_IF_ERROR(CheckCount(in, "paddings", interior.size(), x));
  Dims dims;
  for (std::size_t d = 0; d < low.size(); ++d) {
    if (interior[d] < 0) return in.Error("interior padding ", interior[d], " is negative");
    const int64_t n = x.dims()[d];
    int64_t size = 0;
    if (__builtin_mul_overflow(std::max<int64_t>(n - 1, 0), interior[d], &size) ||
        __builtin_add_overflow(size, n, &size) || __builtin_add_overflow(size, low[d], &size) ||
        __builtin_add_overflow(size, high[d], &size) || size < 0) {
      return in.Error("padding ", low[d], "_", high[d], "_", interior[d], " of dimension ", d,
                      " of ", x, " leaves no valid size");
    }
    dims.push_back(size);
  }
  return in.Array(x.dtype(), dims);
}

absl::StatusOr<Shape> InferTuple(const Inference& in) {
  std::vector<Shape> elements;
  elements.reserve(in.operand_count());
  for (const Shape* shape : in.operands) elements.push_back(*shape);
  return Shape::Tuple(std::move(elements));
}

absl::StatusOr<Shape> InferGetTupleElement(const Inference& in) {
  const int64_t index = in.attrs_as<TupleIndexAttrs>().index;
  const Shape& tuple = in.operand(0);
  if (!tuple.IsTuple()) return in.Error("operand ", tuple, " is not a tuple");
  if (index < 0 || index >= static_cast<int64_t>(tuple.tuple().size())) {
    return in.Error("index ", index, " is out of range for ", tuple);
  }
  return tuple.tuple()[static_cast<std::size_t>(index)];
}

absl::StatusOr<Shape> InferFirstOperand(const Inference& in) {
  if (in.opcode == Opcode::kAddDependency && !in.operand(1).IsToken()) {
    return in.Error("the second operand must be a token, not ", in.operand(1));
  }
  return in.opcode == Opcode::kCopy ? WithoutLayout(in.operand(0)) : in.operand(0);
}

absl::StatusOr<Shape> InferAfterAll(const Inference& in) {
  for (const Shape* shape : in.operands) {
    if (!shape->IsToken()) return in.Error("operand ", *shape, " is not a token");
  }
  return Shape::Token();
}

absl::StatusOr<Shape> InferDimensionSize(const Inference& in) {
  const Shape& x = in.operand(0);
  if (!x.IsArray()) return in.Error("operand ", x, " is not an array");
  const Dims& dimensions = in.attrs_as<DimensionsAttrs>().dimensions;
  if (dimensions.size() != 1)
    return in.Error("needs one dimension, got {", Join(dimensions, ","), "}");
  LAZULI_RETURN_IF_ERROR(in.CheckDims("dimensions", dimensions, x.rank()));
  if (in.opcode == Opcode::kGetDimensionSize) return Shape(DType::kS32);
  if (in.operand(1) != Shape(DType::kS32))
    return in.Error("the size must be s32[], not ", in.operand(1));
  return WithoutLayout(x);
}

}  // namespace lazuli::hlo::internal
