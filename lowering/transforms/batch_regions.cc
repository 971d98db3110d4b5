// Batch rules of reductions, windows, sorts and maps, and of random numbers: their computations are of
// single elements and stay as they are.
#include <algorithm>
#include <optional>
#include <utility>

#include "ir/hlo/monoid.h"
#include "lowering/transforms/batch_rules.h"

namespace lazuli::lowering {
namespace {

// The values that a reduction starts with, behind as many arrays.
bool StartsAreBatched(BatchValues operands) {
  const BatchValues starts = operands.subspan(operands.size() / 2);
  return std::any_of(starts.begin(), starts.end(),
                     [](const BatchValue& start) { return start.batched; });
}

std::vector<Op> FullArraysAndStarts(BatchScope& s, BatchValues operands, std::size_t arrays) {
  std::vector<Op> all = s.FullOperands(operands.subspan(0, arrays));
  for (const BatchValue& start : operands.subspan(arrays)) all.push_back(start.op);
  return all;
}

hlo::WindowAttrs WithBatchDim(const hlo::Instruction& i) {
  hlo::WindowAttrs attrs = i.attrs_as<hlo::WindowAttrs>();
  attrs.window.insert(attrs.window.begin(), hlo::WindowDim{});
  return attrs;
}

}  // namespace

// A reduction by a monoid may start with its identity instead, and take in each sample's own start later.
BatchValue BatchReduce(BatchScope& s, const hlo::Instruction& i, BatchValues operands) {
  const hlo::DimensionsAttrs attrs{Shifted(i.attrs_as<hlo::DimensionsAttrs>().dimensions)};
  if (!StartsAreBatched(operands))
    return s.AddBatched(i, FullArraysAndStarts(s, operands, operands.size() / 2), attrs);
  const std::optional<Opcode> monoid = hlo::MonoidOf(*i.to_apply());
  if (operands.size() != 2 || !monoid) return LoopOverSamples(s, i, operands);
  const Op identity = s.b.Constant(hlo::IdentityOf(*monoid, i.shape().dtype()));
  const BatchValue reduced = s.AddBatched(i, {s.Full(operands[0]), identity}, attrs);
  return BatchScope::Array(
      s.b.Binary(*monoid, s.FullAs(operands[1], reduced.op.shape()), reduced.op));
}

BatchValue BatchReduceWindow(BatchScope& s, const hlo::Instruction& i, BatchValues operands) {
  if (StartsAreBatched(operands)) return LoopOverSamples(s, i, operands);
  return s.AddBatched(i, FullArraysAndStarts(s, operands, operands.size() / 2), WithBatchDim(i));
}

BatchValue BatchSelectAndScatter(BatchScope& s, const hlo::Instruction& i, BatchValues operands) {
  if (operands[2].batched) return LoopOverSamples(s, i, operands);
  return s.AddBatched(i, FullArraysAndStarts(s, operands, 2), WithBatchDim(i));
}

BatchValue BatchMap(BatchScope& s, const hlo::Instruction& i, BatchValues operands) {
  const Dims dimensions = WithFront(0, Shifted(i.attrs_as<hlo::DimensionsAttrs>().dimensions));
  return s.AddBatched(i, s.FullOperands(operands), hlo::DimensionsAttrs{dimensions});
}

BatchValue BatchSort(BatchScope& s, const hlo::Instruction& i, BatchValues operands) {
  hlo::SortAttrs attrs = i.attrs_as<hlo::SortAttrs>();
  ++attrs.dimension;
  return s.AddBatched(i, s.FullOperands(operands), attrs);
}

BatchValue BatchRng(BatchScope& s, const hlo::Instruction& i, BatchValues operands) {
  if (operands[0].batched || operands[1].batched) return LoopOverSamples(s, i, operands);
  return s.AddBatched(i, {operands[0].op, operands[1].op}, i.attrs());
}

// With one state there are more bits of it, the first of them for the first sample.
BatchValue BatchRngBitGenerator(BatchScope& s, const hlo::Instruction& i, BatchValues operands) {
  if (operands[0].batched) return LoopOverSamples(s, i, operands);
  const std::vector<bool> flags{false, true};
  const Shape shape = s.Batched(i.shape(), flags);
  return s.Split(s.b.Add(i.opcode(), {operands[0].op}, i.attrs(), {}, &shape), flags);
}

}  // namespace lazuli::lowering
