#include "lazy/ops/core/step_loop.h"

namespace lazuli::lazy {
namespace {

using lowering::Builder;
using lowering::Op;

// The position of a step in an array of all steps.
std::vector<Op> Starts(Builder& b, Op number, const Shape& array) {
  std::vector<Op> starts(static_cast<std::size_t>(array.rank()), b.Scalar(number.dtype(), 0));
  starts[0] = number;
  return starts;
}

}  // namespace

Op LoopStep::Of(Op x) const {
  const Shape shape = x.shape();  // NOLINT: a copy, for the original moves
  std::vector<int64_t> sizes(shape.dims().begin(), shape.dims().end());
  sizes[0] = 1;
  return b.Reshape(b.DynamicSlice(x, Starts(b, number, shape), sizes), shape.dims().subspan(1));
}

Op LoopStep::With(Op x, Op element) const {
  const Shape shape = x.shape();  // NOLINT: a copy, for the original moves
  std::vector<int64_t> sizes(shape.dims().begin(), shape.dims().end());
  sizes[0] = 1;
  return b.DynamicUpdateSlice(x, b.Reshape(element, sizes), Starts(b, number, shape));
}

std::vector<Op> ForEachStep(Builder& builder, int64_t count, StepOrder order,
                            absl::Span<const Op> carried, absl::Span<const Op> fixed,
                            absl::FunctionRef<std::vector<Op>(const LoopStep&)> body) {
  const bool forward = order == StepOrder::kForward;
  const auto last = static_cast<double>(count - 1);
  std::vector<Op> state{builder.Scalar(DType::kS64, forward ? 0 : last)};
  state.insert(state.end(), carried.begin(), carried.end());
  state.insert(state.end(), fixed.begin(), fixed.end());
  std::vector<Shape> shapes;
  for (const Op x : state) shapes.push_back(x.shape());
  const Shape tuple = Shape::Tuple(shapes);

  hlo::Computation* left = builder.Region("left", {tuple}, [&](Builder& b, auto s) {
    using Relation = hlo::ComparisonDirection;
    return b.Compare(forward ? Relation::kLe : Relation::kGe, b.GetTupleElement(s[0], 0),
                     b.Scalar(DType::kS64, forward ? last : 0));
  });
  hlo::Computation* step = builder.Region("step", {tuple}, [&](Builder& b, auto s) {
    std::vector<Op> at;
    for (std::size_t i = 0; i < shapes.size(); ++i)
      at.push_back(b.GetTupleElement(s[0], static_cast<int64_t>(i)));
    const absl::Span<const Op> all = at;
    const LoopStep in{b, at[0], all.subspan(1, carried.size()), all.subspan(1 + carried.size())};
    std::vector<Op> next = body(in);
    next.insert(next.begin(), b.Plus(at[0], b.Scalar(DType::kS64, forward ? 1 : -1)));
    next.insert(next.end(), in.fixed.begin(), in.fixed.end());
    return b.Tuple(next);
  });
  const Op end = builder.While(builder.Tuple(state), left, step);
  std::vector<Op> result;
  for (std::size_t i = 0; i < carried.size(); ++i)
    result.push_back(builder.GetTupleElement(end, static_cast<int64_t>(i + 1)));
  return result;
}

}  // namespace lazuli::lazy
