// Tuples, branches whose choice is known, and the tables together.
#include <vector>

#include "lowering/passes/match.h"
#include "lowering/passes/rules/rules.h"

namespace lazuli::lowering {
namespace {

using hlo::Instruction;
using hlo::Opcode;

Instruction* ElementOfTuple(Instruction* i, Rewriter&) {
  Instruction* const tuple = i->operand(0);
  if (tuple->opcode() != Opcode::kTuple) return nullptr;
  return tuple->operand(i->attrs_as<hlo::TupleIndexAttrs>().index);
}

Instruction* TupleOfElements(Instruction* i, Rewriter&) {
  Instruction* whole = nullptr;
  for (int64_t k = 0; k < i->operand_count(); ++k) {
    Instruction* const part = i->operand(k);
    if (part->opcode() != Opcode::kGetTupleElement) return nullptr;
    if (part->attrs_as<hlo::TupleIndexAttrs>().index != k) return nullptr;
    if (whole != nullptr && part->operand(0) != whole) return nullptr;
    whole = part->operand(0);
  }
  return whole != nullptr && whole->shape() == i->shape() ? whole : nullptr;
}

// Branch 0 is taken for true; an index out of range takes the last.
Instruction* ConditionalConstant(Instruction* i, Rewriter& r) {
  const Instruction* choice = i->operand(0);
  if (!choice->IsConstant() || !choice->shape().IsScalar()) return nullptr;
  const double value = choice->literal().AsDouble(0);
  const auto branches = static_cast<int64_t>(i->called().size());
  int64_t taken = value >= 0 && value < static_cast<double>(branches) ? static_cast<int64_t>(value)
                                                                      : branches - 1;
  if (choice->shape().dtype() == DType::kPred) taken = value != 0 ? 0 : 1;
  if (i->operand_count() != 1 + branches) return nullptr;
  return r.Add(Opcode::kCall, i->shape(), {i->operand(1 + taken)}, hlo::NoAttrs{},
               {i->called()[static_cast<std::size_t>(taken)]});
}

constexpr Rule kControlRules[] = {
    {"element-of-tuple", Opcode::kGetTupleElement, ElementOfTuple, "(x, y).0 => x"},
    {"tuple-of-elements", Opcode::kTuple, TupleOfElements, "(t.0, t.1) => t"},
    {"conditional-constant", Opcode::kConditional, ConditionalConstant,
     "conditional(true, x, y) => call(x)"},
};

std::vector<Rule> Joined() {
  std::vector<Rule> all;
  for (absl::Span<const Rule> table :
       {ArithmeticRules(), LogicalRules(), ConvertRules(), ShapeRules(), SliceRules(),
        ReductionRules(), ControlRules()}) {
    all.insert(all.end(), table.begin(), table.end());
  }
  return all;
}

}  // namespace

absl::Span<const Rule> ControlRules() { return kControlRules; }

absl::Span<const Rule> AllRules() {
  static const auto* rules = new std::vector<Rule>(Joined());
  return *rules;
}

}  // namespace lazuli::lowering
