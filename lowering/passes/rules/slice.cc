// Slice, pad, concatenate and their dynamic forms: what selects or joins elements.
#include <algorithm>
#include <vector>

#include "lowering/passes/match.h"
#include "lowering/passes/rules/rules.h"

namespace lazuli::lowering {
namespace {

using hlo::Instruction;
using hlo::Opcode;

const hlo::SliceAttrs& SliceOf(const Instruction* i) { return i->attrs_as<hlo::SliceAttrs>(); }

bool AllEqual(const Dims& dims, int64_t value) {
  return std::all_of(dims.begin(), dims.end(), [value](int64_t d) { return d == value; });
}

Instruction* SliceNoOp(Instruction* i, Rewriter&) {
  return i->operand(0)->shape() == i->shape() ? i->operand(0) : nullptr;
}

Instruction* SliceSlice(Instruction* i, Rewriter& r) {
  Instruction* x;
  if (!Match(i, m::Slice(m::Slice(m::Op(&x))))) return nullptr;
  const hlo::SliceAttrs &outer = SliceOf(i), &inner = SliceOf(i->operand(0));
  hlo::SliceAttrs attrs;
  for (std::size_t d = 0; d < outer.starts.size(); ++d) {
    const int64_t size = i->shape().dim(static_cast<int64_t>(d));
    const int64_t start = inner.starts[d] + outer.starts[d] * inner.strides[d];
    const int64_t stride = outer.strides[d] * inner.strides[d];
    attrs.starts.push_back(start);
    attrs.strides.push_back(stride);
    attrs.limits.push_back(size == 0 ? start : start + (size - 1) * stride + 1);
  }
  return r.Add(Opcode::kSlice, i->shape(), {x}, attrs);
}

// A slice along dims that only repeat is a smaller broadcast.
Instruction* SliceBroadcast(Instruction* i, Rewriter& r) {
  Instruction* x;
  if (!Match(i, m::Slice(m::Broadcast(m::Op(&x))))) return nullptr;
  const Instruction* broadcast = i->operand(0);
  const Dims& dimensions = broadcast->attrs_as<hlo::DimensionsAttrs>().dimensions;
  for (int64_t d : dimensions) {
    if (broadcast->shape().dim(d) != i->shape().dim(d)) return nullptr;
  }
  return r.Broadcast(x, i->shape(), dimensions);
}

// A slice that lies within one operand of a concatenate is a slice of that operand.
Instruction* SliceConcatenate(Instruction* i, Rewriter& r) {
  Instruction* const joined = i->operand(0);
  if (joined->opcode() != Opcode::kConcatenate || i->shape().num_elements() == 0) return nullptr;
  const int64_t dim = joined->attrs_as<hlo::DimensionsAttrs>().dimensions[0];
  hlo::SliceAttrs attrs = SliceOf(i);
  const auto d = static_cast<std::size_t>(dim);
  int64_t offset = 0;
  for (Instruction* part : joined->operands()) {
    const int64_t size = part->shape().dim(dim);
    if (attrs.starts[d] >= offset && attrs.limits[d] <= offset + size) {
      attrs.starts[d] -= offset;
      attrs.limits[d] -= offset;
      return part->shape() == i->shape() ? part : r.Add(Opcode::kSlice, i->shape(), {part}, attrs);
    }
    offset += size;
  }
  return nullptr;
}

Instruction* PadNoOp(Instruction* i, Rewriter&) {
  const auto& attrs = i->attrs_as<hlo::PadAttrs>();
  const bool none =
      AllEqual(attrs.low, 0) && AllEqual(attrs.high, 0) && AllEqual(attrs.interior, 0);
  return none && i->operand(0)->shape() == i->shape() ? i->operand(0) : nullptr;
}

// Padding that only removes elements is a slice.
Instruction* PadNegative(Instruction* i, Rewriter& r) {
  const auto& attrs = i->attrs_as<hlo::PadAttrs>();
  const Shape& from = i->operand(0)->shape();
  if (i->shape().num_elements() == 0 || !AllEqual(attrs.interior, 0)) return nullptr;
  hlo::SliceAttrs slice;
  for (int64_t d = 0; d < from.rank(); ++d) {
    const auto k = static_cast<std::size_t>(d);
    if (attrs.low[k] > 0 || attrs.high[k] > 0) return nullptr;
    slice.starts.push_back(-attrs.low[k]);
    slice.limits.push_back(from.dim(d) + attrs.high[k]);
    slice.strides.push_back(1);
  }
  return r.Add(Opcode::kSlice, i->shape(), {i->operand(0)}, slice);
}

// Every element is the padding or an operand that only repeats it.
Instruction* PadSplat(Instruction* i, Rewriter& r) {
  Instruction* x;
  if (!Match(i->operand(0), m::Broadcast(m::Op(&x))) || !x->shape().IsScalar()) return nullptr;
  if (x != i->operand(1)) return nullptr;
  return r.Broadcast(x, i->shape(), {});
}

Instruction* ConcatenateOne(Instruction* i, Rewriter&) {
  return i->operand_count() == 1 ? i->operand(0) : nullptr;
}

Instruction* ConcatenateEmpty(Instruction* i, Rewriter& r) {
  const int64_t dim = i->attrs_as<hlo::DimensionsAttrs>().dimensions[0];
  std::vector<Instruction*> kept;
  for (Instruction* part : i->operands()) {
    if (part->shape().dim(dim) != 0) kept.push_back(part);
  }
  if (kept.empty() || static_cast<int64_t>(kept.size()) == i->operand_count()) return nullptr;
  return kept.size() == 1 ? kept[0] : r.Add(Opcode::kConcatenate, i->shape(), kept, i->attrs());
}

// The pieces of something in order, all of them.
Instruction* ConcatenateSlices(Instruction* i, Rewriter&) {
  const auto dim = static_cast<std::size_t>(i->attrs_as<hlo::DimensionsAttrs>().dimensions[0]);
  Instruction* x = nullptr;
  int64_t end = 0;
  for (Instruction* part : i->operands()) {
    if (part->opcode() != Opcode::kSlice || !AllEqual(SliceOf(part).strides, 1)) return nullptr;
    if (x != nullptr && part->operand(0) != x) return nullptr;
    x = part->operand(0);
    if (SliceOf(part).starts[dim] != end) return nullptr;
    end = SliceOf(part).limits[dim];
  }
  return x != nullptr && x->shape() == i->shape() ? x : nullptr;
}

// Starts are clamped so that the slice fits: a slice of everything starts at 0.
Instruction* DynamicSliceNoOp(Instruction* i, Rewriter&) {
  return i->operand(0)->shape() == i->shape() ? i->operand(0) : nullptr;
}

Instruction* DynamicSliceConstant(Instruction* i, Rewriter& r) {
  const Shape& from = i->operand(0)->shape();
  if (i->operand_count() != 1 + from.rank()) return nullptr;
  hlo::SliceAttrs attrs;
  for (int64_t d = 0; d < from.rank(); ++d) {
    const Instruction* start = i->operand(1 + d);
    if (!start->IsConstant() || !start->shape().IsScalar()) return nullptr;
    const int64_t size = i->shape().dim(d);
    const double clamped =
        std::clamp(start->literal().AsDouble(0), 0.0, static_cast<double>(from.dim(d) - size));
    attrs.starts.push_back(static_cast<int64_t>(clamped));
    attrs.limits.push_back(attrs.starts.back() + size);
    attrs.strides.push_back(1);
  }
  return r.Add(Opcode::kSlice, i->shape(), {i->operand(0)}, attrs);
}

Instruction* DynamicUpdateAll(Instruction* i, Rewriter&) {
  return i->operand(1)->shape() == i->shape() ? i->operand(1) : nullptr;
}

Instruction* SortSingle(Instruction* i, Rewriter&) {
  if (i->operand_count() != 1) return nullptr;
  return i->shape().dim(i->attrs_as<hlo::SortAttrs>().dimension) <= 1 ? i->operand(0) : nullptr;
}

constexpr Rule kSliceRules[] = {
    {"slice-noop", Opcode::kSlice, SliceNoOp, "x[:] => x"},
    {"slice-slice", Opcode::kSlice, SliceSlice, "x[a:b][c:d] => x[a+c:a+d]"},
    {"slice-broadcast", Opcode::kSlice, SliceBroadcast, "broadcast(x)[a:b] => broadcast(x)"},
    {"slice-concatenate", Opcode::kSlice, SliceConcatenate, "concatenate(x, y)[:n] => x"},
    {"pad-noop", Opcode::kPad, PadNoOp, "pad(x, v, 0) => x"},
    {"pad-negative", Opcode::kPad, PadNegative, "pad(x, v, -a) => x[a:]"},
    {"pad-splat", Opcode::kPad, PadSplat, "pad(broadcast(v), v) => broadcast(v)"},
    {"concatenate-one", Opcode::kConcatenate, ConcatenateOne, "concatenate(x) => x"},
    {"concatenate-empty", Opcode::kConcatenate, ConcatenateEmpty, "concatenate(x, y: [0]) => x"},
    {"concatenate-slices", Opcode::kConcatenate, ConcatenateSlices,
     "concatenate(x[:a], x[a:]) => x"},
    {"dynamic-slice-noop", Opcode::kDynamicSlice, DynamicSliceNoOp, "all of x, from anywhere => x"},
    {"dynamic-slice-constant", Opcode::kDynamicSlice, DynamicSliceConstant,
     "from a constant => slice"},
    {"dynamic-update-all", Opcode::kDynamicUpdateSlice, DynamicUpdateAll, "all of x by u => u"},
    {"sort-single", Opcode::kSort, SortSingle, "sort along a dim of 1 => x"},
};

}  // namespace

absl::Span<const Rule> SliceRules() { return kSliceRules; }

}  // namespace lazuli::lowering
