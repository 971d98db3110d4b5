#include <algorithm>

#include "ir/hlo/shapes/shape_inference_internal.h"

namespace lazuli::hlo::internal {
namespace {

using ShapePointers = absl::InlinedVector<const Shape*, 8>;

Shape TupleIfMany(std::vector<Shape> shapes) {
  return shapes.size() == 1 ? std::move(shapes[0]) : Shape::Tuple(std::move(shapes));
}

// reduce and reduce-window: inputs of equal dims, then as many scalar initial values of their
// types.
absl::Status CheckInputsAndInits(const Inference& in) {
  LAZULI_RETURN_IF_ERROR(in.ArrayOperands());
  const std::size_t n = in.operand_count() / 2;
  if (n == 0 || in.operand_count() % 2 != 0) {
    return in.Error("takes as many initial values as inputs, got ", in.operand_count(),
                    " operands");
  }
  for (std::size_t i = 0; i < n; ++i) {
    const Shape& x = in.operand(i);
    const Shape& init = in.operand(n + i);
    if (!SameDims(x, in.operand(0)))
      return in.Error("inputs differ in dimensions: ", in.operand(0), " and ", x);
    if (!init.IsScalar() || init.dtype() != x.dtype()) {
      return in.Error("initial value ", init, " is not a scalar of the type of ", x);
    }
  }
  if (in.callee(0) == nullptr) return absl::OkStatus();
  return CheckReducer(in, "to_apply", in.operands.subspan(n));
}

// One result of these dims for each of the first operands, a tuple if there are several.
absl::StatusOr<Shape> Results(const Inference& in, std::size_t n, absl::Span<const int64_t> dims) {
  if (n == 1) return in.Array(in.operand(0).dtype(), dims);
  std::vector<Shape> results;
  for (std::size_t i = 0; i < n; ++i) {
    LAZULI_ASSIGN_OR_RETURN(Shape result, in.Array(in.operand(i).dtype(), dims));
    results.push_back(std::move(result));
  }
  return Shape::Tuple(std::move(results));
}

absl::Status CheckOperandWindow(const Inference& in, const Window& window) {
  if (static_cast<int64_t>(window.size()) != in.operand(0).rank()) {
    return in.Error("window of ", window.size(), " dimensions for ", in.operand(0));
  }
  return CheckWindow(in, window);
}

Dims WindowedDims(const Shape& x, const Window& window) {
  Dims dims;
  for (std::size_t d = 0; d < window.size(); ++d)
    dims.push_back(WindowedSize(x.dims()[d], window[d]));
  return dims;
}

}  // namespace

absl::Status CheckReducer(const Inference& in, std::string_view role,
                          absl::Span<const Shape* const> types) {
  std::vector<Shape> scalars;
  for (const Shape* type : types) scalars.emplace_back(type->dtype());
  ShapePointers parameters;
  for (int side = 0; side < 2; ++side) {
    for (const Shape& scalar : scalars) parameters.push_back(&scalar);
  }
  const Shape result = TupleIfMany(scalars);
  return in.CheckCallee(0, role, parameters, &result);
}

absl::Status CheckWindow(const Inference& in, const Window& window) {
  constexpr int64_t kMax = int64_t{1} << 40;
  for (const WindowDim& d : window) {
    const bool valid = d.size >= 0 && d.size <= kMax && d.stride >= 1 && d.stride <= kMax &&
                       d.base_dilation >= 1 && d.base_dilation <= kMax && d.window_dilation >= 1 &&
                       d.window_dilation <= kMax && std::abs(d.pad_low) <= kMax &&
                       std::abs(d.pad_high) <= kMax;
    if (!valid) {
      return in.Error("window dimension of size ", d.size, ", stride ", d.stride, ", padding ",
                      d.pad_low, "_", d.pad_high, ", dilations ", d.base_dilation, " and ",
                      d.window_dilation, " is invalid");
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<Shape> InferReduce(const Inference& in) {
  LAZULI_RETURN_IF_ERROR(CheckInputsAndInits(in));
  const Shape& x = in.operand(0);
  const Dims& dimensions = in.attrs_as<DimensionsAttrs>().dimensions;
  LAZULI_RETURN_IF_ERROR(in.CheckDims("dimensions", dimensions, x.rank()));
  Dims dims;
  for (int64_t d = 0; d < x.rank(); ++d) {
    if (std::find(dimensions.begin(), dimensions.end(), d) == dimensions.end())
      dims.push_back(x.dim(d));
  }
  return Results(in, in.operand_count() / 2, dims);
}

namespace {

// What a scanned array has at one position.
absl::StatusOr<Shape> SliceOf(const Inference& in, const Shape& x, int64_t dimension) {
  if (!x.IsArray() || dimension < 0 || dimension >= x.rank())
    return in.Error("dimension ", dimension, " is out of range for ", x);
  Dims dims(x.dims().begin(), x.dims().end());
  dims.erase(dims.begin() + dimension);
  return Shape(x.dtype(), dims);
}

// Positions along the dimension: the inputs', or the declared results' where there are none.
absl::StatusOr<int64_t> ScanLength(const Inference& in, std::size_t inputs, int64_t dimension) {
  const Shape* x = inputs > 0 ? &in.operand(0) : nullptr;
  if (x == nullptr && in.declared != nullptr && !in.declared->tuple().empty())
    x = &in.declared->tuple()[0];
  if (x == nullptr) return in.Error("without inputs the result's shape must be declared");
  LAZULI_RETURN_IF_ERROR(SliceOf(in, *x, dimension).status());
  for (std::size_t i = 1; i < inputs; ++i) {
    LAZULI_RETURN_IF_ERROR(SliceOf(in, in.operand(i), dimension).status());
    if (in.operand(i).dim(dimension) != x->dim(dimension))
      return in.Error("inputs differ in dimension ", dimension, ": ", *x, " and ", in.operand(i));
  }
  return x->dim(dimension);
}

}  // namespace

// Inputs, then carries; to_apply is (slices of inputs, carries) -> (slices of results, carries).
absl::StatusOr<Shape> InferScan(const Inference& in) {
  const auto& attrs = in.attrs_as<ScanAttrs>();
  const auto count = static_cast<int64_t>(in.operand_count());
  if (attrs.num_carries < 0 || attrs.num_carries > count)
    return in.Error("num_carries=", attrs.num_carries, " of ", count, " operands");
  const auto carries = static_cast<std::size_t>(attrs.num_carries);
  const std::size_t inputs = in.operand_count() - carries;
  LAZULI_ASSIGN_OR_RETURN(const int64_t length, ScanLength(in, inputs, attrs.dimension));
  std::vector<Shape> parameters;
  for (std::size_t i = 0; i < inputs; ++i) {
    LAZULI_ASSIGN_OR_RETURN(Shape slice, SliceOf(in, in.operand(i), attrs.dimension));
    parameters.push_back(std::move(slice));
  }
  for (std::size_t i = inputs; i < in.operand_count(); ++i) parameters.push_back(in.operand(i));
  const Computation* body = in.callee(0);
  if (body == nullptr) return InferDeclared(in);
  ShapePointers pointers;
  for (const Shape& parameter : parameters) pointers.push_back(&parameter);
  LAZULI_RETURN_IF_ERROR(in.CheckCallee(0, "to_apply", pointers, nullptr));
  const Shape& root = body->root()->shape();
  if (!root.IsTuple() || root.tuple().size() < carries)
    return in.Error("to_apply ", body->name(), " returns ", root, ", not a tuple that ends in the ",
                    carries, " carries");
  std::vector<Shape> results = root.tuple();
  const std::size_t outputs = results.size() - carries;
  for (std::size_t c = 0; c < carries; ++c) {
    if (!Compatible(results[outputs + c], in.operand(inputs + c))) {
      return in.Error("carry ", c, " is ", in.operand(inputs + c), ", to_apply ", body->name(),
                      " returns ", results[outputs + c]);
    }
  }
  for (std::size_t o = 0; o < outputs; ++o) {
    if (!results[o].IsArray() || attrs.dimension > results[o].rank())
      return in.Error("result ", o, " has no dimension ", attrs.dimension, " for ", results[o]);
    Dims dims(results[o].dims().begin(), results[o].dims().end());
    dims.insert(dims.begin() + attrs.dimension, length);
    LAZULI_ASSIGN_OR_RETURN(results[o], in.Array(results[o].dtype(), dims));
  }
  return Shape::Tuple(std::move(results));
}

absl::StatusOr<Shape> InferReduceWindow(const Inference& in) {
  LAZULI_RETURN_IF_ERROR(CheckInputsAndInits(in));
  const Window& window = in.attrs_as<WindowAttrs>().window;
  LAZULI_RETURN_IF_ERROR(CheckOperandWindow(in, window));
  return Results(in, in.operand_count() / 2, WindowedDims(in.operand(0), window));
}

absl::StatusOr<Shape> InferSelectAndScatter(const Inference& in) {
  LAZULI_RETURN_IF_ERROR(in.ArrayOperands());
  const Shape& x = in.operand(0);
  const Shape& source = in.operand(1);
  const Shape& init = in.operand(2);
  const Window& window = in.attrs_as<WindowAttrs>().window;
  LAZULI_RETURN_IF_ERROR(CheckOperandWindow(in, window));
  if (source.dtype() != x.dtype() ||
      WindowedDims(x, window) != Dims(source.dims().begin(), source.dims().end())) {
    return in.Error("source ", source, " is not what the window makes of ", x);
  }
  if (!init.IsScalar() || init.dtype() != x.dtype()) {
    return in.Error("initial value ", init, " is not a scalar of the type of ", x);
  }
  const Shape scalar(x.dtype()), pred(DType::kPred);
  const Shape* parameters[] = {&scalar, &scalar};
  LAZULI_RETURN_IF_ERROR(in.CheckCallee(0, "select", parameters, &pred));
  LAZULI_RETURN_IF_ERROR(in.CheckCallee(1, "scatter", parameters, &scalar));
  return WithoutLayout(x);
}

absl::StatusOr<Shape> InferSort(const Inference& in) {
  if (in.operands.empty()) return in.Error("has no operand");
  LAZULI_RETURN_IF_ERROR(in.ArrayOperands());
  const Shape& first = in.operand(0);
  const int64_t dimension = in.attrs_as<SortAttrs>().dimension;
  if (dimension < 0 || dimension >= first.rank()) {
    return in.Error("dimension ", dimension, " is out of range for ", first);
  }
  std::vector<Shape> results;
  for (const Shape* shape : in.operands) {
    if (!SameDims(*shape, first))
      return in.Error("operands differ in dimensions: ", first, " and ", *shape);
    if (in.operand_count() > 1) results.push_back(WithoutLayout(*shape));
  }
  if (in.callee(0) != nullptr) {
    std::vector<Shape> scalars;
    for (const Shape* shape : in.operands) scalars.emplace_back(shape->dtype());
    ShapePointers parameters;  // pairs: both values of the first operand, both of the second, ...
    for (const Shape& scalar : scalars) parameters.insert(parameters.end(), {&scalar, &scalar});
    const Shape pred(DType::kPred);
    LAZULI_RETURN_IF_ERROR(in.CheckCallee(0, "to_apply", parameters, &pred));
  }
  if (in.operand_count() == 1) return WithoutLayout(first);
  return Shape::Tuple(std::move(results));
}

absl::StatusOr<Shape> InferTopK(const Inference& in) {
  const Shape& x = in.operand(0);
  const int64_t k = in.attrs_as<TopKAttrs>().k;
  if (!x.IsArray() || x.rank() < 1 || k < 0 || k > x.dim(x.rank() - 1)) {
    return in.Error("k=", k, " is out of range for the last dimension of ", x);
  }
  Shape values = WithoutLayout(x);
  values.set_dim(x.rank() - 1, k);
  Shape indices = values;
  indices.set_dtype(DType::kS32);
  return Shape::Tuple({std::move(values), std::move(indices)});
}

absl::StatusOr<Shape> InferWhile(const Inference& in) {
  const Shape pred(DType::kPred);
  LAZULI_RETURN_IF_ERROR(in.CheckCallee(0, "condition", in.operands, &pred));
  LAZULI_RETURN_IF_ERROR(in.CheckCallee(1, "body", in.operands, &in.operand(0)));
  return in.operand(0);
}

absl::StatusOr<Shape> InferConditional(const Inference& in) {
  if (in.operands.empty() || !in.operand(0).IsScalar() ||
      (in.operand(0).dtype() != DType::kPred && in.operand(0).dtype() != DType::kS32)) {
    return in.Error("the first operand must be pred[] or s32[]",
                    in.operands.empty() ? "" : ", not ",
                    in.operands.empty() ? std::string() : in.operand(0).ToString());
  }
  const std::size_t branches = in.operand_count() - 1;
  if (in.operand(0).dtype() == DType::kPred && branches != 2)
    return in.Error("pred[] selects one of 2 branches, not ", branches);
  if (branches < 1 || (!in.called.empty() && in.called.size() != branches)) {
    return in.Error(in.called.size(), " branches for ", branches, " arguments");
  }
  const Computation* first = in.callee(0);
  const Shape* result =
      first != nullptr && first->root() != nullptr ? &first->root()->shape() : in.declared;
  if (result == nullptr) return in.Error("the result's shape must be declared");
  for (std::size_t i = 0; i < in.called.size(); ++i) {
    LAZULI_RETURN_IF_ERROR(in.CheckCallee(i, "branch", in.operands.subspan(i + 1, 1), result));
  }
  return *result;
}

absl::StatusOr<Shape> InferCall(const Inference& in) {
  LAZULI_RETURN_IF_ERROR(in.CheckCallee(0, "callee", in.operands, nullptr));
  if (in.callee(0) != nullptr && in.callee(0)->root() != nullptr)
    return in.callee(0)->root()->shape();
  return InferDeclared(in);
}

absl::StatusOr<Shape> InferFusion(const Inference& in) { return InferCall(in); }

absl::StatusOr<Shape> InferMap(const Inference& in) {
  LAZULI_RETURN_IF_ERROR(in.ArrayOperands());
  if (in.operands.empty()) return in.Error("has no operand");
  const Shape& x = in.operand(0);
  const Dims& dimensions = in.attrs_as<DimensionsAttrs>().dimensions;
  bool all = static_cast<int64_t>(dimensions.size()) == x.rank();
  for (std::size_t d = 0; all && d < dimensions.size(); ++d)
    all = dimensions[d] == static_cast<int64_t>(d);
  if (!all)
    return in.Error("dimensions={", Join(dimensions, ","), "} are not all of ", x, " in order");
  std::vector<Shape> scalars;
  for (const Shape* shape : in.operands) {
    if (!SameDims(*shape, x))
      return in.Error("operands differ in dimensions: ", x, " and ", *shape);
    scalars.emplace_back(shape->dtype());
  }
  ShapePointers parameters;
  for (const Shape& scalar : scalars) parameters.push_back(&scalar);
  LAZULI_RETURN_IF_ERROR(in.CheckCallee(0, "to_apply", parameters, nullptr));
  if (in.callee(0) == nullptr || in.callee(0)->root() == nullptr) return InferDeclared(in);
  const Shape& result = in.callee(0)->root()->shape();
  if (!result.IsScalar()) return in.Error("to_apply returns ", result, ", not a scalar");
  return Shape(result.dtype(), x.dims());
}

}  // namespace lazuli::hlo::internal
