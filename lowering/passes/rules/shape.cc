// Reshape, transpose, broadcast, reverse, iota: what only renames elements.
#include <algorithm>
#include <numeric>

#include "lowering/passes/match.h"
#include "lowering/passes/rules/rules.h"

namespace lazuli::lowering {
namespace {

using hlo::Instruction;
using hlo::Opcode;

bool IsIota(const Dims& dims) {
  for (std::size_t k = 0; k < dims.size(); ++k) {
    if (dims[k] != static_cast<int64_t>(k)) return false;
  }
  return true;
}

Instruction* ReshapeNoOp(Instruction* i, Rewriter&) {
  Instruction* const x = i->operand(0);
  if (x->shape() != i->shape()) return nullptr;
  return i->opcode() == Opcode::kReshape || IsIota(DimensionsOf(i)) ? x : nullptr;
}

Instruction* ReshapeReshape(Instruction* i, Rewriter& r) {
  Instruction* x;
  if (!Match(i, m::Reshape(m::Reshape(m::Op(&x))))) return nullptr;
  return x->shape() == i->shape() ? x : r.Add(Opcode::kReshape, i->shape(), {x});
}

// Positions of the dims other than 1.
Dims LargeDims(const Shape& shape) {
  Dims positions;
  for (int64_t d = 0; d < shape.rank(); ++d) {
    if (shape.dim(d) != 1) positions.push_back(d);
  }
  return positions;
}

// A reshape that only adds and drops dims of size 1 moves the dims of a broadcast; of a broadcast
// scalar, any reshape does.
Instruction* ReshapeBroadcast(Instruction* i, Rewriter& r) {
  Instruction* x;
  Instruction* const broadcast = i->operand(0);
  if (!Match(broadcast, m::Broadcast(m::Op(&x)))) return nullptr;
  if (x->shape().IsScalar()) return r.Broadcast(x, i->shape(), {});
  const Dims before = LargeDims(broadcast->shape()), after = LargeDims(i->shape());
  if (before.size() != after.size()) return nullptr;
  for (std::size_t k = 0; k < before.size(); ++k) {
    if (broadcast->shape().dim(before[k]) != i->shape().dim(after[k])) return nullptr;
  }
  Dims dimensions;
  for (int64_t position : DimensionsOf(broadcast)) {
    const auto found = std::find(before.begin(), before.end(), position);
    if (found == before.end()) return nullptr;  // a dim of size 1 of x
    dimensions.push_back(after[static_cast<std::size_t>(found - before.begin())]);
  }
  return r.Broadcast(x, i->shape(), dimensions);
}

Instruction* TransposeTranspose(Instruction* i, Rewriter& r) {
  Instruction* x;
  if (!Match(i, m::Transpose(m::Transpose(m::Op(&x))))) return nullptr;
  const Dims& inner = DimensionsOf(i->operand(0));
  Dims permutation;
  for (int64_t d : DimensionsOf(i)) permutation.push_back(inner[static_cast<std::size_t>(d)]);
  if (IsIota(permutation) && x->shape() == i->shape()) return x;
  return r.Add(Opcode::kTranspose, i->shape(), {x}, hlo::DimensionsAttrs{permutation});
}

// Dims of size 1 may go anywhere.
Instruction* TransposeOfOnes(Instruction* i, Rewriter& r) {
  int64_t last = -1;
  for (int64_t d : DimensionsOf(i)) {
    if (i->operand(0)->shape().dim(d) == 1) continue;
    if (d < last) return nullptr;
    last = d;
  }
  return r.Add(Opcode::kReshape, i->shape(), {i->operand(0)});
}

Instruction* TransposeBroadcast(Instruction* i, Rewriter& r) {
  Instruction* x;
  if (!Match(i, m::Transpose(m::Broadcast(m::Op(&x))))) return nullptr;
  const Dims& permutation = DimensionsOf(i);
  Dims dimensions;
  for (int64_t d : DimensionsOf(i->operand(0))) {
    dimensions.push_back(std::find(permutation.begin(), permutation.end(), d) -
                         permutation.begin());
  }
  if (!std::is_sorted(dimensions.begin(), dimensions.end())) return nullptr;
  return r.Broadcast(x, i->shape(), dimensions);
}

Instruction* BroadcastBroadcast(Instruction* i, Rewriter& r) {
  Instruction* x;
  if (!Match(i, m::Broadcast(m::Broadcast(m::Op(&x))))) return nullptr;
  const Dims& outer = DimensionsOf(i);
  Dims dimensions;
  for (int64_t d : DimensionsOf(i->operand(0)))
    dimensions.push_back(outer[static_cast<std::size_t>(d)]);
  return r.Broadcast(x, i->shape(), dimensions);
}

Instruction* ReverseReverse(Instruction* i, Rewriter&) {
  Instruction* x;
  if (!Match(i, m::Reverse(m::Reverse(m::Op(&x))))) return nullptr;
  Dims a = DimensionsOf(i), b = DimensionsOf(i->operand(0));
  std::sort(a.begin(), a.end());
  std::sort(b.begin(), b.end());
  return a == b ? x : nullptr;
}

// Reversing dims of size 1 does nothing; neither does reversing what is repeated along the dim.
Instruction* ReverseUniform(Instruction* i, Rewriter&) {
  Instruction* const x = i->operand(0);
  for (int64_t d : DimensionsOf(i)) {
    if (x->shape().dim(d) == 1) continue;
    if (x->opcode() != Opcode::kBroadcast) return nullptr;
    const Dims& kept = DimensionsOf(x);
    if (std::find(kept.begin(), kept.end(), d) != kept.end()) return nullptr;
  }
  return x;
}

Instruction* IotaSingle(Instruction* i, Rewriter& r) {
  return i->shape().dim(i->attrs_as<hlo::IotaAttrs>().iota_dimension) == 1 ? r.Full(i->shape(), 0)
                                                                           : nullptr;
}

Instruction* DimensionSize(Instruction* i, Rewriter& r) {
  const int64_t size = i->operand(0)->shape().dim(DimensionsOf(i)[0]);
  if (i->shape().dtype() != DType::kS32) return nullptr;
  return r.AddConstant(Literal::Scalar(static_cast<int32_t>(size)));
}

constexpr Rule kShapeRules[] = {
    {"shape-noop",
     {Opcode::kReshape, Opcode::kTranspose, Opcode::kBroadcast},
     ReshapeNoOp,
     "reshape(x) => x"},
    {"reshape-reshape", Opcode::kReshape, ReshapeReshape, "reshape(reshape(x)) => reshape(x)"},
    {"reshape-broadcast", Opcode::kReshape, ReshapeBroadcast,
     "reshape(broadcast(x)) => broadcast(x)"},
    {"transpose-transpose", Opcode::kTranspose, TransposeTranspose,
     "transpose(transpose(x)) => transpose(x)"},
    {"transpose-of-ones", Opcode::kTranspose, TransposeOfOnes, "transpose(x: [1,n]) => reshape(x)"},
    {"transpose-broadcast", Opcode::kTranspose, TransposeBroadcast,
     "transpose(broadcast(x)) => broadcast(x)"},
    {"broadcast-broadcast", Opcode::kBroadcast, BroadcastBroadcast,
     "broadcast(broadcast(x)) => broadcast(x)"},
    {"reverse-reverse", Opcode::kReverse, ReverseReverse, "reverse(reverse(x)) => x"},
    {"reverse-uniform", Opcode::kReverse, ReverseUniform, "reverse(broadcast(s)) => broadcast(s)"},
    {"iota-single", Opcode::kIota, IotaSingle, "iota over a dim of 1 => 0"},
    {"dimension-size", Opcode::kGetDimensionSize, DimensionSize, "get-dimension-size(x: [n]) => n"},
};

}  // namespace

absl::Span<const Rule> ShapeRules() { return kShapeRules; }

}  // namespace lazuli::lowering
