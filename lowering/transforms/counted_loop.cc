#include "lowering/transforms/counted_loop.h"

#include <utility>

namespace lazuli::lowering {
namespace {

std::vector<Op> StartsIn(Builder& b, Op stack, Op number) {
  std::vector<Op> starts(static_cast<std::size_t>(stack.rank()), b.Scalar(number.dtype(), 0));
  starts[0] = number;
  return starts;
}

ir::Dims WithLeading(int64_t size, absl::Span<const int64_t> dims) {
  ir::Dims all{size};
  all.insert(all.end(), dims.begin(), dims.end());
  return all;
}

}  // namespace

std::vector<Op> AddCountedLoop(Builder& b, int64_t count, bool is_backward,
                               absl::Span<const Op> state, absl::Span<const Op> fixed,
                               LoopBody body) {
  const auto last = static_cast<double>(count - 1);
  std::vector<Op> begin{b.Scalar(DType::kS64, is_backward ? last : 0)};
  begin.insert(begin.end(), state.begin(), state.end());
  begin.insert(begin.end(), fixed.begin(), fixed.end());
  std::vector<Shape> shapes;
  for (const Op x : begin) shapes.push_back(x.shape());
  const Shape shape = Shape::Tuple(shapes);
  const auto goes_on = [&](Builder& r, absl::Span<const Op> p) {
    using Direction = hlo::ComparisonDirection;
    return r.Compare(is_backward ? Direction::kGe : Direction::kLe, r.GetTupleElement(p[0], 0),
                     r.Scalar(DType::kS64, is_backward ? 0 : last));
  };
  const auto step = [&](Builder& r, absl::Span<const Op> p) {
    const std::vector<Op> all = PartsOf(r, p[0]);
    const absl::Span<const Op> parts = absl::MakeConstSpan(all).subspan(1);
    const absl::Span<const Op> same = parts.subspan(state.size());
    const std::vector<Op> made = body(r, all[0], parts.first(state.size()), same);
    std::vector<Op> next{r.Plus(all[0], r.Scalar(DType::kS64, is_backward ? -1 : 1))};
    next.insert(next.end(), made.begin(), made.end());
    next.insert(next.end(), same.begin(), same.end());
    return r.Tuple(next);
  };
  hlo::Computation* const condition = b.Region("goes_on", {shape}, goes_on);
  hlo::Computation* const next = b.Region("step", {shape}, step);
  if (condition == nullptr || next == nullptr) return {state.begin(), state.end()};
  const std::vector<Op> end = PartsOf(b, b.While(b.Tuple(begin), condition, next));
  if (end.size() != begin.size()) return {state.begin(), state.end()};
  return {end.begin() + 1, end.begin() + 1 + static_cast<std::ptrdiff_t>(state.size())};
}

Op CounterAt(Builder& b, Op begin, Op number, int64_t increment) {
  const Op steps = b.Convert(number, begin.dtype());
  const Op by = b.Scalar(begin.dtype(), static_cast<double>(increment));
  return b.Plus(begin, b.Times(steps, by));
}

Op EmptyStack(Builder& b, const Shape& element, int64_t count) {
  return b.Full(Shape(element.dtype(), WithLeading(count, element.dims())), 0);
}

Op ElementOf(Builder& b, Op stack, Op number) {
  const Shape shape = stack.shape();  // NOLINT: a copy, for the original moves
  const absl::Span<const int64_t> element = shape.dims().subspan(1);
  const Op slice = b.DynamicSlice(stack, StartsIn(b, stack, number), WithLeading(1, element));
  return b.Reshape(slice, element);
}

Op WithElement(Builder& b, Op stack, Op number, Op element) {
  const Op slice = b.Reshape(element, WithLeading(1, element.shape().dims()));
  return b.DynamicUpdateSlice(stack, slice, StartsIn(b, stack, number));
}

}  // namespace lazuli::lowering
