// Logic, comparison and selection.
#include "lowering/passes/match.h"
#include "lowering/passes/rules/rules.h"

namespace lazuli::lowering {
namespace {

using hlo::ComparisonDirection;
using hlo::Instruction;
using hlo::Opcode;

bool IsPred(const Instruction* i) { return i->shape().dtype() == DType::kPred; }
bool IsTotallyOrdered(const Instruction* i) { return IsPred(i) || IsIntegral(i->shape().dtype()); }

// All bits set. Unsigned types are left out: their greatest value may round as a double.
bool IsAllOnes(const Instruction* i) {
  return IsPred(i) ? IsSplatOf(i, 1) : IsSigned(i->shape().dtype()) && IsSplatOf(i, -1);
}

Instruction* SelfOperand(Instruction* i, Rewriter&) {
  return i->operand(0) == i->operand(1) ? i->operand(0) : nullptr;
}

Instruction* AndOrConstant(Instruction* i, Rewriter&) {
  for (int64_t k : {1, 0}) {
    Instruction* const c = i->operand(k);
    const bool ones = IsAllOnes(c), zero = IsSplatOf(c, 0);
    if (!ones && !zero) continue;
    return ones == (i->opcode() == Opcode::kAnd) ? i->operand(1 - k) : c;
  }
  return nullptr;
}

Instruction* XorZero(Instruction* i, Rewriter&) {
  Instruction* x;
  return Match(i, m::Xor(m::Op(&x), m::Scalar(0))) ? x : nullptr;
}

Instruction* XorSelf(Instruction* i, Rewriter& r) {
  return i->operand(0) == i->operand(1) ? r.Full(i->shape(), 0) : nullptr;
}

Instruction* XorOnes(Instruction* i, Rewriter& r) {
  return IsAllOnes(i->operand(1)) ? r.Add(Opcode::kNot, i->shape(), {i->operand(0)}) : nullptr;
}

Instruction* NotNot(Instruction* i, Rewriter&) {
  Instruction* x;
  return Match(i, m::Not(m::Not(m::Op(&x)))) ? x : nullptr;
}

ComparisonDirection Inverse(ComparisonDirection d) {
  switch (d) {
    case ComparisonDirection::kEq:
      return ComparisonDirection::kNe;
    case ComparisonDirection::kNe:
      return ComparisonDirection::kEq;
    case ComparisonDirection::kLt:
      return ComparisonDirection::kGe;
    case ComparisonDirection::kLe:
      return ComparisonDirection::kGt;
    case ComparisonDirection::kGt:
      return ComparisonDirection::kLe;
    case ComparisonDirection::kGe:
      return ComparisonDirection::kLt;
  }
  return d;
}

ComparisonDirection Swapped(ComparisonDirection d) {
  switch (d) {
    case ComparisonDirection::kEq:
      return ComparisonDirection::kEq;
    case ComparisonDirection::kNe:
      return ComparisonDirection::kNe;
    case ComparisonDirection::kLt:
      return ComparisonDirection::kGt;
    case ComparisonDirection::kLe:
      return ComparisonDirection::kGe;
    case ComparisonDirection::kGt:
      return ComparisonDirection::kLt;
    case ComparisonDirection::kGe:
      return ComparisonDirection::kLe;
  }
  return d;
}

// An unordered pair is neither less nor greater-or-equal, so floats can only swap equal and
// not-equal.
Instruction* NotCompare(Instruction* i, Rewriter& r) {
  Instruction* const compare = i->operand(0);
  if (compare->opcode() != Opcode::kCompare) return nullptr;
  hlo::CompareAttrs attrs = compare->attrs_as<hlo::CompareAttrs>();
  const bool equality =
      attrs.direction == ComparisonDirection::kEq || attrs.direction == ComparisonDirection::kNe;
  if (!equality && !IsTotallyOrdered(compare->operand(0)) &&
      attrs.type != hlo::ComparisonType::kTotalOrder) {
    return nullptr;
  }
  attrs.direction = Inverse(attrs.direction);
  return r.Add(Opcode::kCompare, i->shape(), compare->operands(), attrs);
}

Instruction* CompareConstantLeft(Instruction* i, Rewriter& r) {
  if (SplatConstant(i->operand(0)) == nullptr || SplatConstant(i->operand(1)) != nullptr)
    return nullptr;
  hlo::CompareAttrs attrs = i->attrs_as<hlo::CompareAttrs>();
  attrs.direction = Swapped(attrs.direction);
  return r.Add(Opcode::kCompare, i->shape(), {i->operand(1), i->operand(0)}, attrs);
}

Instruction* CompareSelf(Instruction* i, Rewriter& r) {
  if (i->operand(0) != i->operand(1) || !IsTotallyOrdered(i->operand(0))) return nullptr;
  const ComparisonDirection d = i->attrs_as<hlo::CompareAttrs>().direction;
  const bool reflexive = d == ComparisonDirection::kEq || d == ComparisonDirection::kLe ||
                         d == ComparisonDirection::kGe;
  return r.Full(i->shape(), reflexive ? 1 : 0);
}

Instruction* ComparePred(Instruction* i, Rewriter& r) {
  Instruction* const x = i->operand(0);
  if (!IsPred(x)) return nullptr;
  const ComparisonDirection d = i->attrs_as<hlo::CompareAttrs>().direction;
  if (d != ComparisonDirection::kEq && d != ComparisonDirection::kNe) return nullptr;
  const bool is_true = IsSplatOf(i->operand(1), 1);
  if (!is_true && !IsSplatOf(i->operand(1), 0)) return nullptr;
  if (is_true == (d == ComparisonDirection::kEq)) return x;
  return r.Add(Opcode::kNot, i->shape(), {x});
}

Instruction* SelectConstant(Instruction* i, Rewriter&) {
  if (IsSplatOf(i->operand(0), 1)) return i->operand(1);
  return IsSplatOf(i->operand(0), 0) ? i->operand(2) : nullptr;
}

Instruction* SelectSame(Instruction* i, Rewriter&) {
  return i->operand(1) == i->operand(2) ? i->operand(1) : nullptr;
}

Instruction* SelectNot(Instruction* i, Rewriter& r) {
  Instruction* p;
  if (!Match(i->operand(0), m::Not(m::Op(&p)))) return nullptr;
  return r.Add(Opcode::kSelect, i->shape(), {p, i->operand(2), i->operand(1)});
}

Instruction* SelectPreds(Instruction* i, Rewriter& r) {
  Instruction* const p = i->operand(0);
  if (!IsPred(i) || !SameDims(p->shape(), i->shape())) return nullptr;
  if (IsSplatOf(i->operand(1), 1) && IsSplatOf(i->operand(2), 0)) return p;
  if (IsSplatOf(i->operand(1), 0) && IsSplatOf(i->operand(2), 1)) {
    return r.Add(Opcode::kNot, i->shape(), {p});
  }
  return nullptr;
}

constexpr Rule kLogicalRules[] = {
    {"and-or-self", {Opcode::kAnd, Opcode::kOr}, SelfOperand, "x and x => x"},
    {"and-or-constant",
     {Opcode::kAnd, Opcode::kOr},
     AndOrConstant,
     "x and true => x, x and false => false"},
    {"xor-zero", Opcode::kXor, XorZero, "x xor 0 => x"},
    {"xor-self", Opcode::kXor, XorSelf, "x xor x => 0"},
    {"xor-ones", Opcode::kXor, XorOnes, "x xor ~0 => not x"},
    {"not-not", Opcode::kNot, NotNot, "not not x => x"},
    {"not-compare", Opcode::kNot, NotCompare, "not (x < y) => x >= y (floats: == and != only)"},
    {"compare-constant-left", Opcode::kCompare, CompareConstantLeft, "c < x => x > c"},
    {"compare-self", Opcode::kCompare, CompareSelf, "x <= x => true (integers)"},
    {"compare-pred", Opcode::kCompare, ComparePred, "p == true => p, p == false => not p"},
    {"select-constant", Opcode::kSelect, SelectConstant, "true ? x : y => x"},
    {"select-same", Opcode::kSelect, SelectSame, "p ? x : x => x"},
    {"select-not", Opcode::kSelect, SelectNot, "not p ? x : y => p ? y : x"},
    {"select-preds", Opcode::kSelect, SelectPreds, "p ? true : false => p"},
};

}  // namespace

absl::Span<const Rule> LogicalRules() { return kLogicalRules; }

}  // namespace lazuli::lowering
