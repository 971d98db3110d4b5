#include "backend/cpu/codegen/generic_form.h"

#include <algorithm>

#include "ir/hlo/opcode.h"

namespace lazuli::cpu {

std::optional<std::size_t> GenericForm::Find(int64_t number) const {
  const auto found = std::find(numbers_.begin(), numbers_.end(), number);
  if (found == numbers_.end()) return std::nullopt;
  return static_cast<std::size_t>(found - numbers_.begin());
}

void GenericForm::Number(int64_t number) {
  if (number >= -1 && number <= 1) return Structure(number);
  std::optional<std::size_t> place = Find(number);
  if (!place) {
    place = numbers_.size();
    numbers_.push_back(number);
  }
  Structure('n', *place);
}

void GenericForm::Number(const Affine& form) {
  Number(form.constant);
  for (const int64_t c : form.coefficients) Number(c);
}

void GenericForm::Bits(const Literal& literal) {
  for (int64_t k = 0; k < literal.byte_size(); ++k) Structure(static_cast<int>(literal.raw()[k]));
}

void GenericForm::Node(const PlanNode& node) {
  const hlo::Instruction& i = *node.instruction;
  if (IsComplex(i.shape().dtype())) return Refuse();  // their parts have addresses of their own
  Structure(static_cast<int>(node.kind), hlo::OpcodeText(i.opcode()), DTypeText(i.shape().dtype()),
            Join(node.operands, ","));
  switch (node.kind) {
    case PlanNode::Kind::kGiven:
      if (i.opcode() != hlo::Opcode::kParameter) return Refuse();
      [[fallthrough]];
    case PlanNode::Kind::kLoad:
      Structure(i.parameter_number());
      return Number(node.form);
    case PlanNode::Kind::kGather:
      Structure(i.operand(0)->parameter_number(), DTypeText(i.operand(1)->shape().dtype()),
                HasNarrowOffsets(i));
      for (const IndexComponent& component : IndexComponents(i)) {
        Number(component.last);
        Number(component.stride);
      }
      return Number(node.form);
    case PlanNode::Kind::kConstant:
      return Bits(i.literal());
    case PlanNode::Kind::kIota:
      Structure(HasNarrowIota(i));
      return Number(node.form);
    case PlanNode::Kind::kOp:
      for (const hlo::Instruction* operand : i.operands())
        Structure(DTypeText(operand->shape().dtype()));
      if (const auto* compare = std::get_if<hlo::CompareAttrs>(&i.attrs()))
        Structure(static_cast<int>(compare->direction), static_cast<int>(compare->type));
      return;
  }
}

void GenericForm::Plan(const BodyPlan& plan) {
  Structure(plan.sizes.size());
  for (const int64_t size : plan.sizes) Number(size);
  for (const PlanNode& node : plan.nodes) Node(node);
}

}  // namespace lazuli::cpu
