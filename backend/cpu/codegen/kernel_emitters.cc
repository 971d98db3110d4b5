#include "backend/cpu/codegen/kernel_emitters.h"

#include <algorithm>

namespace lazuli::backend {
namespace {

using hlo::Opcode;

int64_t CostOf(Opcode opcode) {
  switch (opcode) {
    case Opcode::kExponential:
    case Opcode::kExponentialMinusOne:
    case Opcode::kLog:
    case Opcode::kLogPlusOne:
    case Opcode::kLogistic:
    case Opcode::kTanh:
    case Opcode::kErf:
      return 20;
    case Opcode::kPower:
    case Opcode::kAtan2:
    case Opcode::kSine:
    case Opcode::kCosine:
    case Opcode::kTan:
    case Opcode::kAsin:
    case Opcode::kAcos:
    case Opcode::kAtan:
    case Opcode::kAsinh:
    case Opcode::kAcosh:
    case Opcode::kAtanh:
    case Opcode::kSinh:
    case Opcode::kCosh:
    case Opcode::kCbrt:
    case Opcode::kRemainder:
      return 40;
    case Opcode::kDivide:
    case Opcode::kSqrt:
    case Opcode::kRsqrt:
      return 5;
    default:
      return 1;
  }
}

// 10 microseconds: several times what opening and closing a parallel region costs.
constexpr int64_t kChunkCost = 160000;

}  // namespace

std::vector<const hlo::Instruction*> Outputs(const hlo::Computation& body) {
  const hlo::Instruction* root = body.root();
  if (root->opcode() != Opcode::kTuple) return {root};
  return {root->operands().begin(), root->operands().end()};
}

int64_t CostOf(const BodyPlan& plan) {
  int64_t cost = 2;
  for (const PlanNode& node : plan.nodes) {
    cost += node.kind == PlanNode::Kind::kLoad ? 2 : CostOf(node.instruction->opcode());
  }
  return cost;
}

int64_t GrainFor(int64_t cost) {
  return std::max<int64_t>(1, kChunkCost / std::max<int64_t>(1, cost));
}

Dims PhysicalVariables(const Shape& shape, Dims& sizes) {
  const Dims minor_to_major = shape.minor_to_major();
  Dims variables(static_cast<std::size_t>(shape.rank()));
  for (std::size_t i = minor_to_major.size(); i-- > 0;) {
    variables[static_cast<std::size_t>(minor_to_major[i])] = static_cast<int64_t>(sizes.size());
    sizes.push_back(shape.dim(minor_to_major[i]));
  }
  return variables;
}

}  // namespace lazuli::backend
