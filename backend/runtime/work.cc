#include "backend/runtime/work.h"

#include <algorithm>
#include <unordered_map>

namespace lazuli::backend {
namespace {

using hlo::Instruction;
using hlo::Opcode;

double Elements(const Shape& shape) {
  if (shape.IsArray()) return static_cast<double>(shape.num_elements());
  double sum = 0;
  for (const Shape& element : shape.tuple()) sum += Elements(element);
  return sum;
}

double ProductFlops(const Instruction& i) {
  const double outputs = Elements(i.shape());
  if (i.opcode() == Opcode::kDot) {
    double contracted = 1;
    for (const int64_t d : i.attrs_as<hlo::DotAttrs>().lhs_contracting_dims)
      contracted *= static_cast<double>(i.operand(0)->shape().dim(d));
    return 2 * outputs * contracted;
  }
  // Each output meets every element of its feature's kernel.
  const auto& attrs = i.attrs_as<hlo::ConvolutionAttrs>();
  const Shape& kernel = i.operand(1)->shape();
  const auto features = static_cast<double>(kernel.dim(attrs.dim_labels.kernel_output_feature));
  return features == 0 ? 0 : 2 * outputs * Elements(kernel) / features;
}

double OwnFlops(const Instruction& i) {
  switch (i.opcode()) {
    case Opcode::kReduce:
    case Opcode::kReduceWindow:
    case Opcode::kSelectAndScatter:
    case Opcode::kScatter:
    case Opcode::kSort:
    case Opcode::kScan:
    case Opcode::kCholesky:
    case Opcode::kTriangularSolve:
    case Opcode::kFft:
    case Opcode::kMap:
    case Opcode::kRngBitGenerator:
    case Opcode::kBatchNormTraining:
    case Opcode::kBatchNormInference:
    case Opcode::kBatchNormGrad: {
      double elements = Elements(i.shape());
      for (const Instruction* operand : i.operands())
        elements = std::max(elements, Elements(operand->shape()));
      return elements;
    }
    default:
      return i.IsElementwise() && i.opcode() != Opcode::kCopy ? Elements(i.shape()) : 0;
  }
}

bool MovesNothing(Opcode opcode) {
  return opcode == Opcode::kParameter || opcode == Opcode::kConstant || opcode == Opcode::kTuple ||
         opcode == Opcode::kGetTupleElement || opcode == Opcode::kBitcast ||
         opcode == Opcode::kAfterAll;
}

bool RunsCallees(Opcode opcode) {
  return opcode == Opcode::kWhile || opcode == Opcode::kConditional || opcode == Opcode::kCall ||
         opcode == Opcode::kFusion;
}

Work OwnWork(const Instruction& i) {
  Work work;
  if (MovesNothing(i.opcode())) return work;
  if (i.opcode() == Opcode::kDot || i.opcode() == Opcode::kConvolution)
    work.product_flops = ProductFlops(i);
  work.flops = work.product_flops + OwnFlops(i);
  work.bytes = static_cast<double>(i.shape().byte_size());
  for (const Instruction* operand : i.operands())
    work.bytes += static_cast<double>(operand->shape().byte_size());
  return work;
}

// Each computation is looked at once, however often it is called.
class Works {
 public:
  Work Of(const Instruction& i) {
    if (!RunsCallees(i.opcode())) return OwnWork(i);
    Work work;
    for (const hlo::Computation* callee : i.called()) work += Of(*callee);
    const double times = i.opcode() == Opcode::kWhile ? kAssumedTrips : 1;
    return {work.flops * times, work.product_flops * times, work.bytes * times};
  }

 private:
  Work Of(const hlo::Computation& computation) {
    const auto known = known_.find(&computation);
    if (known != known_.end()) return known->second;
    Work work;
    for (const auto& i : computation.instructions()) work += Of(*i);
    return known_[&computation] = work;
  }

  std::unordered_map<const hlo::Computation*, Work> known_;
};

}  // namespace

Work WorkOf(const Instruction& i) { return Works().Of(i); }

double BytesMoved(const Instruction& i) {
  if (MovesNothing(i.opcode())) return 0;
  auto bytes = static_cast<double>(i.shape().byte_size());
  const absl::Span<Instruction* const> operands = i.operands();
  for (auto operand = operands.begin(); operand != operands.end(); ++operand) {
    if (std::find(operands.begin(), operand, *operand) == operand)
      bytes += static_cast<double>((*operand)->shape().byte_size());
  }
  return bytes;
}

}  // namespace lazuli::backend
