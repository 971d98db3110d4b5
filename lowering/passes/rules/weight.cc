#include "lowering/passes/rules/weight.h"

#include "lowering/passes/match.h"

namespace lazuli::lowering {
namespace {

using hlo::Instruction;
using hlo::Opcode;

struct Share {
  double own;
  double of_operands;
};

Share ShareOf(const Instruction* i) {
  switch (i->opcode()) {
    case Opcode::kConstant:
      return {1, 0};
    case Opcode::kReshape:
    case Opcode::kBroadcast:
    case Opcode::kBitcast:
    case Opcode::kReverse:
    case Opcode::kConcatenate:
    case Opcode::kTuple:
    case Opcode::kGetTupleElement:
    case Opcode::kCall:
      return {1, 1};
    case Opcode::kSlice:
      return {2, 1};
    case Opcode::kTranspose:
      return {3, 1};
    case Opcode::kPad:
    case Opcode::kDynamicSlice:
    case Opcode::kDynamicUpdateSlice:
    case Opcode::kConditional:
    case Opcode::kParameter:
    case Opcode::kIota:
    case Opcode::kGetDimensionSize:
      return {4, 1};
    case Opcode::kDivide:
      return {8, 2};
    default:
      return i->IsElementwise() ? Share{1, 2} : Share{16, 2};
  }
}

bool HasConstantOnTheLeft(const Instruction* i) {
  if (!hlo::Traits(i->opcode()).commutative && i->opcode() != Opcode::kCompare) return false;
  return i->operand_count() == 2 && SplatConstant(i->operand(0)) != nullptr &&
         SplatConstant(i->operand(1)) == nullptr;
}

}  // namespace

hlo::DenseMap<double> WeightsOf(const hlo::Computation& computation) {
  hlo::DenseMap<double> weights(computation);
  for (const Instruction* i : computation.PostOrder()) {
    const Share share = ShareOf(i);
    double operands = 0;
    for (const Instruction* operand : i->operands()) operands += weights[operand];
    weights[i] = share.own + share.of_operands * operands + (HasConstantOnTheLeft(i) ? 1 : 0);
  }
  return weights;
}

}  // namespace lazuli::lowering
