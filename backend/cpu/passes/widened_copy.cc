#include "backend/cpu/passes/widened_copy.h"

#include <algorithm>
#include <unordered_map>
#include <vector>

#include "ir/types/literal.h"

namespace lazuli::cpu {
namespace {

using hlo::Computation;
using hlo::Instruction;
using hlo::Opcode;

bool CanWiden(const Instruction& i) {
  switch (i.opcode()) {
    case Opcode::kParameter:
    case Opcode::kConstant:
    case Opcode::kConvert:
    case Opcode::kBroadcast:
    case Opcode::kReshape:
    case Opcode::kTranspose:
    case Opcode::kSlice:
    case Opcode::kDot:
    case Opcode::kAdd:
    case Opcode::kSubtract:
    case Opcode::kMultiply:
    case Opcode::kDivide:
    case Opcode::kNegate:
    case Opcode::kExponential:
    case Opcode::kMaximum:
    case Opcode::kCompare:
    case Opcode::kSelect:
    case Opcode::kTuple:
      return true;
    default:
      return false;
  }
}
bool IsOfHalves(const Instruction& i) {
  return IsHalf(i.shape().dtype()) ||
         std::any_of(i.operands().begin(), i.operands().end(),
                     [](const auto* operand) { return IsHalf(operand->shape().dtype()); });
}

Shape OfDType(Shape shape, DType dtype) {
  shape.set_dtype(dtype);
  return shape;
}

class Widener {
 public:
  explicit Widener(const Computation& body)
      : body_(body), copy_(body.parent()->AddComputation(body.name())) {}

  Computation* Copy() {
    for (const Instruction* parameter : body_.parameters())
      copies_[parameter] =
          Wide(copy_->AddParameter(parameter->parameter_number(), parameter->shape()));
    for (const Instruction* i : body_.PostOrder())
      if (i->opcode() != Opcode::kParameter && i != body_.root()) copies_[i] = CopyOf(*i);
    SetRoot(*body_.root());
    return copy_;
  }

 private:
  Instruction* Converted(Instruction* x, DType dtype) {
    if (x->shape().dtype() == dtype) return x;
    return copy_->Add(Opcode::kConvert, OfDType(x->shape(), dtype), {x});
  }
  Instruction* Wide(Instruction* x) {
    return IsHalf(x->shape().dtype()) ? Converted(x, DType::kF32) : x;
  }
  std::vector<Instruction*> Operands(const Instruction& i) const {
    std::vector<Instruction*> operands;
    for (const Instruction* operand : i.operands()) operands.push_back(copies_.at(operand));
    return operands;
  }
  Instruction* CopyOf(const Instruction& i) {
    const std::vector<Instruction*> operands = Operands(i);
    if (!IsOfHalves(i)) return copy_->AddClone(i, operands);
    const DType dtype = IsHalf(i.shape().dtype()) ? DType::kF32 : i.shape().dtype();
    if (i.opcode() == Opcode::kConvert) return Converted(operands[0], dtype);
    if (i.opcode() == Opcode::kConstant) return copy_->AddConstant(i.literal().Converted(dtype));
    Instruction* const wide =
        copy_->Add(i.opcode(), OfDType(i.shape(), dtype), operands, i.attrs(), i.called());
    wide->set_metadata(i.metadata());
    return wide;
  }
  void SetRoot(const Instruction& root) {
    if (root.opcode() != Opcode::kTuple)
      return copy_->set_root(Converted(CopyOf(root), root.shape().dtype()));
    std::vector<Instruction*> results;
    for (const Instruction* result : root.operands())
      results.push_back(Converted(copies_.at(result), result->shape().dtype()));
    copy_->set_root(copy_->Add(Opcode::kTuple, root.shape(), results));
  }

  const Computation& body_;
  Computation* const copy_;
  std::unordered_map<const Instruction*, Instruction*> copies_;
};

}  // namespace

Computation* WidenedCopy(const Computation& body) {
  const auto& all = body.instructions();
  const auto is_of_halves = [](const auto& i) { return IsOfHalves(*i); };
  const bool can = std::all_of(all.begin(), all.end(), [&](const auto& i) {
    return !is_of_halves(i) || (CanWiden(*i) && i->called().empty());
  });
  if (!can || std::none_of(all.begin(), all.end(), is_of_halves)) return nullptr;
  return Widener(body).Copy();
}

}  // namespace lazuli::cpu
