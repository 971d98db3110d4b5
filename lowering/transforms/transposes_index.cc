// Transpose rules of what takes elements by position, of reductions and of windows.
#include <algorithm>
#include <utility>

#include "ir/hlo/monoid.h"
#include "ir/support/status.h"
#include "lowering/transforms/formula.h"
#include "lowering/transforms/positions.h"
#include "lowering/transforms/transpose.h"

namespace lazuli::lowering {
namespace {

std::vector<Op> Before(std::vector<Op> first, const std::vector<Op>& rest) {
  first.insert(first.end(), rest.begin(), rest.end());
  return first;
}

Op SliceAt(TransposeStep& s, Op x, const std::vector<Op>& starts, const Shape& like) {
  return s.b.Add(Opcode::kDynamicSlice, Before({x}, starts),
                 hlo::DynamicSliceAttrs{ir::Dims(like.dims().begin(), like.dims().end())});
}

// Which updates of a scatter that replaces elements are there in the end: pred of their shape.
Op AreLast(TransposeStep& s, const hlo::ScatterAttrs& attrs) {
  const Shape& updates = s.shape(2);
  const Shape flat(DType::kS32, {updates.num_elements()});
  const Op numbers = s.b.Reshape(s.b.Iota(flat, 0), updates.dims());
  const Op none = s.b.Full(Shape(DType::kS32, s.i.shape().dims()), -1);
  const Op last = s.b.Scatter(none, s.x(1), numbers, attrs, Opcode::kCopy);
  return Equal(numbers, GatherWhereScattered(s.b, last, s.x(1), updates, attrs)).op;
}

}  // namespace

absl::Status TransposeDynamicSlice(TransposeStep& s) {
  const std::vector<Op> starts = s.KnownFrom(1);
  const bool is_first = !s.cotangents.of(s.operands[0][0].slot).valid();
  const Op sum = s.Taken(0), ct = s.ct();
  const Op there = is_first ? ct : s.b.Plus(SliceAt(s, sum, starts, s.i.shape()), ct);
  s.Replace(0, s.b.Add(Opcode::kDynamicUpdateSlice, Before({sum, there}, starts)));
  return absl::OkStatus();
}

absl::Status TransposeDynamicUpdateSlice(TransposeStep& s) {
  const std::vector<Op> starts = s.KnownFrom(2);
  const Op ct = s.ct();
  const Op zeros = s.b.Full(s.shape(1).WithDefaultLayout(), 0);
  if (s.linear(0)) s.Give(0, s.b.Add(Opcode::kDynamicUpdateSlice, Before({ct, zeros}, starts)));
  if (s.linear(1)) s.Give(1, SliceAt(s, ct, starts, s.shape(1)));
  return absl::OkStatus();
}

absl::Status TransposeGather(TransposeStep& s) {
  const auto& attrs = s.i.attrs_as<hlo::GatherAttrs>();
  const Op indices = ClampedIndices(s.b, s.shape(0), s.x(1), attrs);
  s.Replace(0, s.b.Scatter(s.Taken(0), indices, s.ct(), ScatterOf(attrs), Opcode::kAdd));
  return absl::OkStatus();
}

absl::Status TransposeScatter(TransposeStep& s) {
  const auto& attrs = s.i.attrs_as<hlo::ScatterAttrs>();
  const hlo::Computation& combine = *s.i.to_apply();
  const Op ct = s.ct();
  if (hlo::MonoidOf(combine) == Opcode::kAdd) {
    s.Give(0, ct);
    if (s.linear(2)) s.Give(2, GatherWhereScattered(s.b, ct, s.x(1), s.shape(2), attrs));
    return absl::OkStatus();
  }
  if (hlo::MonoidOf(combine) == Opcode::kMultiply && !s.linear(2)) {
    s.Give(0, AddLike(s.b, s.i, {ct, s.x(1), s.x(2)}));
    return absl::OkStatus();
  }
  if (combine.root() != combine.parameters()[1]) return s.NotLinear();
  const Op zeros = s.b.Full(s.shape(2).WithDefaultLayout(), 0);
  if (s.linear(0)) s.Give(0, AddLike(s.b, s.i, {ct, s.x(1), zeros}));
  if (s.linear(2)) {
    const Value there = GatherWhereScattered(s.b, ct, s.x(1), s.shape(2), attrs);
    s.Give(2,
           attrs.unique_indices ? there.op : Choose(AreLast(s, attrs), there, there.Number(0)).op);
  }
  return absl::OkStatus();
}

absl::Status TransposeReduce(TransposeStep& s) {
  if (s.operands.size() != 2 || hlo::MonoidOf(*s.i.to_apply()) != Opcode::kAdd)
    return s.NotLinear();
  const ir::Dims& reduced = s.i.attrs_as<hlo::DimensionsAttrs>().dimensions;
  const Op ct = s.ct();
  ir::Dims kept, all;
  for (int64_t d = 0; d < s.shape(0).rank(); ++d) {
    if (std::find(reduced.begin(), reduced.end(), d) == reduced.end()) kept.push_back(d);
  }
  for (int64_t d = 0; d < ct.rank(); ++d) all.push_back(d);
  if (s.linear(0)) s.Give(0, s.b.Broadcast(ct, s.shape(0).dims(), kept));
  if (s.linear(1)) s.Give(1, s.b.Reduce(Opcode::kAdd, ct, all));
  return absl::OkStatus();
}

absl::Status TransposeReduceWindow(TransposeStep& s) {
  if (s.operands.size() != 2 || hlo::MonoidOf(*s.i.to_apply()) != Opcode::kAdd || s.linear(1))
    return s.NotLinear();
  // Each element gets the cotangents of the windows in which it was: a window sum of them, with the
  // roles of stride and dilation exchanged.
  hlo::Window window = s.i.attrs_as<hlo::WindowAttrs>().window;
  for (std::size_t d = 0; d < window.size(); ++d) {
    hlo::WindowDim& dim = window[d];
    const int64_t size = (s.shape(0).dims()[d] - 1) * dim.base_dilation + 1;
    const int64_t reach = (dim.size - 1) * dim.window_dilation + 1;
    const int64_t results = (s.i.shape().dims()[d] - 1) * dim.stride + 1;
    dim.pad_low = reach - dim.pad_low - 1;
    dim.pad_high = size + reach - 1 - results - dim.pad_low;
    std::swap(dim.stride, dim.base_dilation);
  }
  s.Give(0, s.b.ReduceWindow(Opcode::kAdd, s.ct(), window));
  return absl::OkStatus();
}

absl::Status TransposeSelectAndScatter(TransposeStep& s) {
  const Op ct = s.ct();
  if (s.linear(0)) return s.NotLinear();
  if (s.linear(1)) {
    const hlo::Window& window = s.i.attrs_as<hlo::WindowAttrs>().window;
    const Op at = SelectedPositions(s.b, s.x(0), window, *s.i.called()[0]);
    s.Give(1, ElementsAt(s.b, ct, at));
  }
  if (s.linear(2)) {
    ir::Dims all;
    for (int64_t d = 0; d < ct.rank(); ++d) all.push_back(d);
    s.Give(2, s.b.Reduce(Opcode::kAdd, ct, all));
  }
  return absl::OkStatus();
}

}  // namespace lazuli::lowering
