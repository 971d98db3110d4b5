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

lowering::Ops RepeatWhile(Builder& builder, absl::Span<const Op> begin,
                          absl::FunctionRef<Op(Builder&, const lowering::Ops&)> more,
                          absl::FunctionRef<lowering::Ops(Builder&, const lowering::Ops&)> next) {
  std::vector<Shape> shapes;
  for (const Op x : begin) shapes.push_back(x.shape());
  const Shape state = Shape::Tuple(shapes);
  const auto elements = [&](Builder& b, Op tuple) {
    lowering::Ops all;
    for (std::size_t i = 0; i < shapes.size(); ++i)
      all.push_back(b.GetTupleElement(tuple, static_cast<int64_t>(i)));
    return all;
  };
  hlo::Computation* const left = builder.Region(
      "left", {state}, [&](Builder& b, auto s) { return more(b, elements(b, s[0])); });
  hlo::Computation* const step = builder.Region(
      "step", {state}, [&](Builder& b, auto s) { return b.Tuple(next(b, elements(b, s[0]))); });
  return elements(builder, builder.While(builder.Tuple(begin), left, step));
}

std::vector<Op> ForEachStep(Builder& builder, int64_t count, StepOrder order,
                            absl::Span<const Op> carried, absl::Span<const Op> fixed,
                            absl::FunctionRef<std::vector<Op>(const LoopStep&)> body) {
  const bool forward = order == StepOrder::kForward;
  const auto last = static_cast<double>(count - 1);
  lowering::Ops begin{builder.Scalar(DType::kS64, forward ? 0 : last)};
  begin.insert(begin.end(), carried.begin(), carried.end());
  begin.insert(begin.end(), fixed.begin(), fixed.end());
  const auto is_left = [&](Builder& b, const lowering::Ops& at) {
    using Relation = hlo::ComparisonDirection;
    return b.Compare(forward ? Relation::kLe : Relation::kGe, at[0],
                     b.Scalar(DType::kS64, forward ? last : 0));
  };
  const auto next = [&](Builder& b, const lowering::Ops& at) {
    const absl::Span<const Op> all = at;
    const LoopStep in{b, at[0], all.subspan(1, carried.size()), all.subspan(1 + carried.size())};
    const std::vector<Op> made = body(in);
    lowering::Ops after{b.Plus(at[0], b.Scalar(DType::kS64, forward ? 1 : -1))};
    after.insert(after.end(), made.begin(), made.end());
    after.insert(after.end(), in.fixed.begin(), in.fixed.end());
    return after;
  };
  const lowering::Ops end = RepeatWhile(builder, begin, is_left, next);
  const absl::Span<const Op> result = absl::MakeConstSpan(end).subspan(1, carried.size());
  return {result.begin(), result.end()};
}

}  // namespace lazuli::lazy
