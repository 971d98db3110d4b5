#include "lowering/transforms/tangents.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "ir/evaluator/evaluator.h"
#include "ir/support/status.h"
#include "lowering/transforms/formula.h"

namespace lazuli::lowering {
namespace {

// --- the words of the column "tangent rule"

struct NoRuleWord {};
struct ZeroWord {};
struct RemovedWord {};  // a pass has written it in other terms
struct Times {
  Value factor;
};
struct Over {
  Value divisor;
};
struct Partials {  // a formula by operand
  Value dx, dy;
};

// An operand or the result in a formula: taken when the formula of its row runs.
struct OperandWord {
  TangentStep& s;
  std::size_t k;
  operator Value() const { return s.x(k); }  // NOLINT(google-explicit-constructor)
};
struct ResultWord {
  TangentStep& s;
  operator Value() const { return s.result(); }  // NOLINT(google-explicit-constructor)
};

// 1, 1/2 or 0 where x is more than y, as much, or less, given the larger one: JAX's choice for ties.
Value Balanced(Value x, Value larger, Value y) {
  return Choose(Equal(x, larger), Choose(Equal(y, larger), x.Number(0.5), x.Number(1)),
                x.Number(0));
}

// d/dx of x^y: 0 where y is.
Value PowerByBase(Value x, Value y) {
  const Value zero = Equal(y, y.Number(0));
  return Choose(zero, y.Number(0), y * Power(x, Choose(zero, y.Number(1), y - 1.0)));
}

// --- applying a rule

Duals Apply(TangentStep& s, NoRuleWord /*word*/) {
  return s.Error(Unimplemented("no derivative of ", hlo::OpcodeText(s.i.opcode())));
}
Duals Apply(TangentStep& s, RemovedWord /*word*/) { return Apply(s, NoRuleWord{}); }
Duals Apply(TangentStep& s, ZeroWord /*word*/) { return s.WithoutTangents(); }
Duals Apply(TangentStep& s, Times rule) { return s.With((rule.factor * s.t(0)).op); }
Duals Apply(TangentStep& s, Over rule) { return s.With((s.t(0) / rule.divisor).op); }
Duals Apply(TangentStep& s, const Partials& rule) {
  if (!s.active(1)) return s.With((rule.dx * s.t(0)).op);
  if (!s.active(0)) return s.With((rule.dy * s.t(1)).op);
  return s.With((rule.dx * s.t(0) + rule.dy * s.t(1)).op);
}
Duals Apply(TangentStep& s, TangentRule rule) { return rule(s); }

Duals ByTable(TangentStep& s) {
  constexpr NoRuleWord kNoRule;
  constexpr ZeroWord kZero;
  constexpr RemovedWord kRemoved;
  const OperandWord x{s, 0}, y{s, 1};
  const ResultWord r{s};
  switch (s.i.opcode()) {
#define LAZULI_TRANSFORM_RULES(opcode, tangent, transpose, batch) \
  case Opcode::opcode:                                            \
    return Apply(s, tangent);
#include "lowering/transforms/rules.def"
#undef LAZULI_TRANSFORM_RULES
  }
  return {};
}

bool AnyActive(absl::Span<const Duals> operands) {
  return std::any_of(operands.begin(), operands.end(), [](const Duals& parts) {
    return std::any_of(parts.begin(), parts.end(), [](const Dual& d) { return d.active(); });
  });
}

bool AnyHasTangents(const Shape& shape) {
  const std::vector<Shape> parts = PartsOf(shape);
  return std::any_of(parts.begin(), parts.end(), HasTangents);
}

}  // namespace

Duals TangentStep::AllParts() const {
  Duals all;
  for (const Duals& parts : operands) all.insert(all.end(), parts.begin(), parts.end());
  return all;
}

const std::vector<Op>& TangentStep::results() {
  if (!results_.empty()) return results_;
  std::vector<std::vector<Op>> values;
  for (const Duals& parts : operands) {
    values.emplace_back();
    for (const Dual& part : parts) values.back().push_back(part.x);
  }
  return results_ = AddLikeOfParts(b, i, values);
}

Duals TangentStep::With(absl::Span<const Op> tangents) {
  Duals all;
  for (const Op value : results()) all.push_back({value, {}});
  for (std::size_t k = 0; k < all.size() && k < tangents.size(); ++k) all[k].t = tangents[k];
  return all;
}

Duals TangentStep::Error(const absl::Status& status) {
  return {PartCount(i.shape()), {b.Error(hlo::AtInstruction(status, i)), {}}};
}

Duals Differentiate(Builder& b, const hlo::Computation& computation,
                    absl::Span<const Dual> parameters) {
  PartMap<Dual> map;
  map.AddParameters(computation, parameters);
  for (const hlo::Instruction* i : computation.PostOrder()) {
    if (i->opcode() == Opcode::kParameter || map.Route(*i)) continue;
    if (!b.status().ok()) {
      map[i] = {PartCount(i->shape()), {b.Error(b.status()), {}}};
      continue;
    }
    const Builder::MetadataScope scope(b, i->metadata());
    TangentStep step(b, *i, map.OfOperands(*i));
    const bool wanted = AnyActive(step.operands) && AnyHasTangents(i->shape());
    map[i] = wanted ? ByTable(step) : step.WithoutTangents();
  }
  return map.at(computation.root());
}

}  // namespace lazuli::lowering
