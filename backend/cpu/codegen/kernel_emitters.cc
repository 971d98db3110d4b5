#include "backend/cpu/codegen/kernel_emitters.h"

#include <algorithm>

namespace lazuli::cpu {
namespace {

using hlo::Opcode;

// Whether the elements at index i of variable 0 are the i-th of as many equal pieces of an array.
bool MovesWithOutermost(const Affine& form, const Dims& sizes, int64_t elements) {
  int64_t rest = form.constant;
  for (std::size_t v = 0; v < sizes.size(); ++v) {
    if (form.coefficients[v] < 0) return false;
    if (v > 0) rest += form.coefficients[v] * (sizes[v] - 1);
  }
  return form.constant >= 0 && form.coefficients[0] * sizes[0] == elements &&
         rest < form.coefficients[0];
}

// 10 microseconds: several times what opening and closing a parallel region costs.
constexpr int64_t kChunkCost = 160000;

}  // namespace

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
    case Opcode::kGather:
    case Opcode::kDynamicSlice:
      return 8;
    case Opcode::kDivide:
    case Opcode::kSqrt:
    case Opcode::kRsqrt:
      return 5;
    default:
      return 1;
  }
}

std::vector<const hlo::Instruction*> Outputs(const hlo::Computation& body) {
  const hlo::Instruction* root = body.root();
  if (root->opcode() != Opcode::kTuple) return {root};
  return {root->operands().begin(), root->operands().end()};
}

int64_t CostOf(const BodyPlan& plan) {
  int64_t cost = 2;
  for (const PlanNode& node : plan.nodes) {
    const int64_t work =
        node.kind == PlanNode::Kind::kLoad ? 2 : CostOf(node.instruction->opcode());
    cost += IsComplex(node.instruction->shape().dtype()) ? 3 * work : work;
  }
  return cost;
}

void FindParts(KernelShape& shape, const KernelRequest& request,
               absl::Span<const BodyPlan* const> plans, const Affine& output, int64_t elements) {
  const Dims& sizes = plans[0]->sizes;
  shape.by_part.assign(request.body.parameters().size(), 0);
  if (elements == 0 || shape.items % sizes[0] != 0 || !MovesWithOutermost(output, sizes, elements))
    return;
  shape.outermost = sizes[0];
  shape.by_part.assign(request.body.parameters().size(), 1);
  for (const BodyPlan* plan : plans) {
    for (const PlanNode& node : plan->nodes) {
      const hlo::Instruction* parameter = node.parameter();
      if (parameter == nullptr) continue;
      if (node.kind == PlanNode::Kind::kGather ||
          !MovesWithOutermost(node.form, plan->sizes, parameter->shape().num_elements()))
        shape.by_part[static_cast<std::size_t>(parameter->parameter_number())] = 0;
    }
  }
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

}  // namespace lazuli::cpu
