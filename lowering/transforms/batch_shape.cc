// Batch rules of elementwise opcodes and of those that move data: attributes that name dims name the
// next ones.
#include <utility>

#include "lowering/transforms/batch_rules.h"

namespace lazuli::lowering {

BatchValue BatchElementwise(BatchScope& s, const hlo::Instruction& i, BatchValues operands) {
  const Shape shape = s.Batched(i.shape());
  std::vector<Op> full;
  for (std::size_t k = 0; k < operands.size(); ++k) {
    const bool scalar = i.operand(static_cast<int64_t>(k))->shape().rank() == 0;
    // The scalars of select and clamp go with any array.
    if (scalar && !operands[k].batched && operands.size() == 3 && i.shape().rank() > 0) {
      full.push_back(operands[k].op);
    } else {
      full.push_back(s.FullAs(operands[k], shape));
    }
  }
  return s.AddBatched(i, full, i.attrs());
}

BatchValue BatchSameAttrs(BatchScope& s, const hlo::Instruction& i, BatchValues operands) {
  return s.AddBatched(i, s.FullOperands(operands), i.attrs());
}

BatchValue BatchDimensions(BatchScope& s, const hlo::Instruction& i, BatchValues operands) {
  return s.AddBatched(i, s.FullOperands(operands),
                      hlo::DimensionsAttrs{Shifted(i.attrs_as<hlo::DimensionsAttrs>().dimensions)});
}

BatchValue BatchBroadcast(BatchScope& s, const hlo::Instruction& i, BatchValues operands) {
  const Dims positions = WithFront(0, Shifted(i.attrs_as<hlo::DimensionsAttrs>().dimensions));
  return s.AddBatched(i, {operands[0].op}, hlo::DimensionsAttrs{positions});
}

BatchValue BatchTranspose(BatchScope& s, const hlo::Instruction& i, BatchValues operands) {
  return BatchBroadcast(s, i, operands);
}

BatchValue BatchReshape(BatchScope& s, const hlo::Instruction& i, BatchValues operands) {
  const Shape shape = s.Batched(i.shape());
  return BatchScope::Array(
      s.b.Add(Opcode::kReshape, {s.Full(operands[0])}, hlo::NoAttrs{}, {}, &shape));
}

BatchValue BatchSlice(BatchScope& s, const hlo::Instruction& i, BatchValues operands) {
  const auto& attrs = i.attrs_as<hlo::SliceAttrs>();
  return s.AddBatched(i, {operands[0].op},
                      hlo::SliceAttrs{.starts = WithFront(0, attrs.starts),
                                      .limits = WithFront(s.size(), attrs.limits),
                                      .strides = WithFront(1, attrs.strides)});
}

// A value of its own for each sample is chosen where an array of ones was padded with zeros.
BatchValue BatchPad(BatchScope& s, const hlo::Instruction& i, BatchValues operands) {
  const auto& attrs = i.attrs_as<hlo::PadAttrs>();
  const hlo::PadAttrs batched{.low = WithFront(0, attrs.low),
                              .high = WithFront(0, attrs.high),
                              .interior = WithFront(0, attrs.interior)};
  const Op x = s.Full(operands[0]);
  if (!operands[1].batched) return s.AddBatched(i, {x, operands[1].op}, batched);
  Builder& b = s.b;
  const Op zero = b.Scalar(x.dtype(), 0);
  const BatchValue padded = s.AddBatched(i, {x, zero}, batched);
  const Shape ones(DType::kPred, i.operand(0)->shape().dims());
  const Op inside =
      b.Pad(b.Full(ones, 1), b.Scalar(DType::kPred, 0), attrs.low, attrs.high, attrs.interior);
  return BatchScope::Array(b.Select(s.Full(BatchScope::Array(inside, false)), padded.op,
                                    s.FullAs(operands[1], s.Batched(i.shape()))));
}

BatchValue BatchOptBarrier(BatchScope& s, const hlo::Instruction& i, BatchValues operands) {
  std::vector<bool> flags;
  operands[0].AppendFlags(flags);
  return s.Split(s.b.Add(i.opcode(), {s.Join(operands[0])}), flags);
}

BatchValue BatchAddDependency(BatchScope& s, const hlo::Instruction& i, BatchValues operands) {
  return BatchScope::Array(s.b.Add(i.opcode(), {operands[0].op, operands[1].op}));
}

// All samples have one size.
BatchValue BatchGetDimensionSize(BatchScope& s, const hlo::Instruction& i, BatchValues operands) {
  const Dims dimensions = Shifted(i.attrs_as<hlo::DimensionsAttrs>().dimensions);
  return BatchScope::Array(s.b.Add(i.opcode(), {operands[0].op}, hlo::DimensionsAttrs{dimensions}),
                           false);
}

BatchValue BatchSetDimensionSize(BatchScope& s, const hlo::Instruction& i, BatchValues operands) {
  if (operands[1].batched) {
    return s.Error(
        Unimplemented("vmap: set-dimension-size cannot give each sample a size of its own"));
  }
  const Dims dimensions = Shifted(i.attrs_as<hlo::DimensionsAttrs>().dimensions);
  return s.AddBatched(i, {operands[0].op, operands[1].op}, hlo::DimensionsAttrs{dimensions});
}

}  // namespace lazuli::lowering
