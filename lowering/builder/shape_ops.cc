// Builder's elementwise instructions that take attributes, and those that move data.
#include <algorithm>
#include <utility>

#include "lowering/builder/builder.h"

namespace lazuli::lowering {
namespace {

Dims ToDims(absl::Span<const int64_t> values) { return Dims(values.begin(), values.end()); }

// Dims of x and y after NumPy broadcasting; false if some pair is neither equal nor has a 1.
bool CommonDims(absl::Span<const int64_t> x, absl::Span<const int64_t> y, Dims* common) {
  if (x.size() < y.size()) std::swap(x, y);
  common->assign(x.begin(), x.end());
  const std::size_t offset = x.size() - y.size();
  for (std::size_t i = 0; i < y.size(); ++i) {
    int64_t& size = (*common)[offset + i];
    if (size == y[i] || y[i] == 1) continue;
    if (size != 1) return false;
    size = y[i];
  }
  return true;
}

}  // namespace

bool Builder::MakeShape(DType dtype, absl::Span<const int64_t> dims, Shape* shape) {
  absl::StatusOr<Shape> made = Shape::Make(dtype, dims);
  if (!made.ok()) {
    Error(std::move(made).status());
    return false;
  }
  *shape = *std::move(made);
  return true;
}

Op Builder::Compare(hlo::ComparisonDirection direction, Op x, Op y) {
  return Add(Opcode::kCompare, {x, y}, hlo::CompareAttrs{.direction = direction});
}

Op Builder::Convert(Op x, DType dtype) {
  if (!status_.ok() || x.dtype() == dtype) return x;
  Shape shape = x.shape();
  shape.set_dtype(dtype);
  return Add(Opcode::kConvert, {x}, hlo::NoAttrs{}, {}, &shape);
}

Op Builder::Broadcast(Op x, absl::Span<const int64_t> dims, absl::Span<const int64_t> dimensions) {
  Shape shape;
  if (!status_.ok() || !MakeShape(x.dtype(), dims, &shape)) return Poisoned();
  return Add(Opcode::kBroadcast, {x}, hlo::DimensionsAttrs{ToDims(dimensions)}, {}, &shape);
}

Op Builder::BroadcastTo(Op x, absl::Span<const int64_t> dims) {
  if (!status_.ok()) return Poisoned();
  const Shape& from = x.shape();
  Dims common;
  if (from.dims() == dims) return x;
  if (static_cast<std::size_t>(from.rank()) > dims.size() ||
      !CommonDims(from.dims(), dims, &common) || absl::MakeConstSpan(common) != dims) {
    return Error(
        InvalidArgument("shape ", from, " does not broadcast to ", Shape(from.dtype(), dims)));
  }
  // HLO's broadcast adds dimensions but stretches none: dims of size 1 that grow are dropped first.
  const int64_t offset = static_cast<int64_t>(dims.size()) - from.rank();
  Dims kept, positions;
  for (int64_t i = 0; i < from.rank(); ++i) {
    if (from.dim(i) != dims[static_cast<std::size_t>(i + offset)]) continue;
    kept.push_back(from.dim(i));
    positions.push_back(i + offset);
  }
  return Broadcast(Reshape(x, kept), dims, positions);
}

std::pair<Op, Op> Builder::BroadcastTogether(Op x, Op y) {
  if (!status_.ok()) return {Poisoned(), Poisoned()};
  Dims common;
  if (!CommonDims(x.shape().dims(), y.shape().dims(), &common)) {
    const Op error =
        Error(InvalidArgument("shapes ", x.shape(), " and ", y.shape(), " do not broadcast"));
    return {error, error};
  }
  return {BroadcastTo(x, common), BroadcastTo(y, common)};
}

Op Builder::Reshape(Op x, absl::Span<const int64_t> dims) {
  if (!status_.ok() || x.shape().dims() == dims) return x;
  Shape shape;
  if (!MakeShape(x.dtype(), dims, &shape)) return Poisoned();
  return Add(Opcode::kReshape, {x}, hlo::NoAttrs{}, {}, &shape);
}

Op Builder::Transpose(Op x, absl::Span<const int64_t> permutation) {
  return Add(Opcode::kTranspose, {x}, hlo::DimensionsAttrs{ToDims(permutation)});
}

Op Builder::Reverse(Op x, absl::Span<const int64_t> dimensions) {
  return Add(Opcode::kReverse, {x}, hlo::DimensionsAttrs{ToDims(dimensions)});
}

Op Builder::Slice(Op x, absl::Span<const int64_t> starts, absl::Span<const int64_t> limits,
                  absl::Span<const int64_t> strides) {
  return Add(Opcode::kSlice, {x},
             hlo::SliceAttrs{
                 .starts = ToDims(starts), .limits = ToDims(limits), .strides = ToDims(strides)});
}

Op Builder::DynamicSlice(Op x, absl::Span<const Op> starts, absl::Span<const int64_t> sizes) {
  Ops operands{x};
  operands.insert(operands.end(), starts.begin(), starts.end());
  return Add(Opcode::kDynamicSlice, operands, hlo::DynamicSliceAttrs{ToDims(sizes)});
}

Op Builder::DynamicUpdateSlice(Op x, Op update, absl::Span<const Op> starts) {
  Ops operands{x, update};
  operands.insert(operands.end(), starts.begin(), starts.end());
  return Add(Opcode::kDynamicUpdateSlice, operands);
}

Op Builder::Concatenate(absl::Span<const Op> xs, int64_t dimension) {
  return Add(Opcode::kConcatenate, xs, hlo::DimensionsAttrs{Dims{dimension}});
}

Op Builder::Pad(Op x, Op value, absl::Span<const int64_t> low, absl::Span<const int64_t> high,
                absl::Span<const int64_t> interior) {
  return Add(Opcode::kPad, {x, value},
             hlo::PadAttrs{.low = ToDims(low), .high = ToDims(high), .interior = ToDims(interior)});
}

}  // namespace lazuli::lowering
