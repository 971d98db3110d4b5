// Tangent rules of elementwise instructions and of movement that no formula of the table says.
#include <utility>

#include "ir/support/status.h"
#include "lowering/transforms/custom_rules.h"
#include "lowering/transforms/formula.h"
#include "lowering/transforms/tangents.h"

namespace lazuli::lowering {
namespace {

// Everywhere, of a scalar beside an array of these dims; an array as it is.
Value Spread(Value x, const Shape& like) {
  if (SameDims(x.op.shape(), like)) return x;
  return x.b().Broadcast(x.op, ir::Dims(like.dims().begin(), like.dims().end()), {});
}

}  // namespace

Duals LinearTangent(TangentStep& s) {
  std::vector<std::vector<Op>> tangents;
  for (const Duals& parts : s.operands) {
    tangents.emplace_back();
    for (const Dual& part : parts) {
      const bool differs = HasTangents(part.x.shape());
      tangents.back().push_back(part.active() ? part.t : differs ? s.b.ZerosLike(part.x) : part.x);
    }
  }
  std::vector<Op> results = AddLikeOfParts(s.b, s.i, tangents);
  for (Op& result : results) {
    if (!HasTangents(result.shape())) result = {};
  }
  return s.With(results);
}

Duals SumTangent(TangentStep& s) {
  if (!s.active(1)) return s.With(s.t(0));
  if (!s.active(0)) return s.With(s.t(1));
  return LinearTangent(s);
}

Duals DifferenceTangent(TangentStep& s) {
  if (!s.active(1)) return s.With(s.t(0));
  if (!s.active(0)) return s.With((-Value(s.t(1))).op);
  return LinearTangent(s);
}

Duals QuotientTangent(TangentStep& s) {
  const Value y = s.x(1);
  if (!s.active(1)) return s.With((Value(s.t(0)) / y).op);
  const Value by_divisor = Value(s.t(1)) * (Value(s.result()) / y);
  if (!s.active(0)) return s.With((-by_divisor).op);
  return s.With((Value(s.t(0)) / y - by_divisor).op);
}

Duals BilinearTangent(TangentStep& s) {
  std::vector<Op> operands;
  for (std::size_t k = 0; k < s.operands.size(); ++k) operands.push_back(s.x(k));
  Op sum;
  for (const std::size_t k : {0, 1}) {
    if (!s.active(k)) continue;
    std::vector<Op> with = operands;
    with[k] = s.t(k);
    const Op term = AddLike(s.b, s.i, with);
    sum = sum.valid() ? s.b.Plus(sum, term) : term;
  }
  return sum.valid() ? s.With(sum) : s.WithoutTangents();
}

Duals PassTangent(TangentStep& s) {
  std::vector<Op> tangents;
  for (const Dual& part : s.operands[0]) tangents.push_back(part.t);
  return s.With(tangents);
}

Duals AbsTangent(TangentStep& s) {
  const Value x = s.x(0), t = s.t(0);
  if (!ir::IsComplex(s.x(0).dtype())) return s.With((t * Sign(x)).op);
  // Re(conj(x) t) / |x|, and 0 where x is.
  const Value along = RealPart(Conj(x) * t);
  return s.With((along / ZeroAsOne(s.result())).op);
}

Duals SignTangent(TangentStep& s) {
  const Value x = s.x(0);
  if (!ir::IsComplex(s.x(0).dtype())) return s.WithoutTangents();
  // What turns the number, not what makes it longer: (t - y Re(conj(y) t)) / |x|.
  const Value y = s.result(), t = s.t(0);
  const Value length = ZeroAsOne(s.b.Unary(Opcode::kAbs, x.op));
  const Value along = As(RealPart(Conj(y) * t), s.x(0).dtype());
  return s.With(((t - y * along) / As(length, s.x(0).dtype())).op);
}

Duals BitcastConvertTangent(TangentStep& s) {
  const bool same = s.x(0).dtype() == s.i.shape().dtype();
  return same ? s.With(s.t(0)) : s.WithoutTangents();
}

Duals StochasticConvertTangent(TangentStep& s) {
  return s.With(s.b.Convert(s.t(0), s.i.shape().dtype()));
}

Duals ClampTangent(TangentStep& s) {
  const Shape& shape = s.i.shape();
  const Value low = Spread(s.x(0), shape), x = s.x(1), high = Spread(s.x(2), shape);
  const Value within[] = {Both(Less(x, low), Less(low, high)), Both(Less(low, x), Less(x, high)),
                          Less(high, x)};
  Op sum;
  for (std::size_t k = 0; k < 3; ++k) {
    if (!s.active(k)) continue;
    const Value t = Spread(s.t(k), shape);
    const Op term = Choose(within[k], t, t.Number(0)).op;
    sum = sum.valid() ? s.b.Plus(sum, term) : term;
  }
  return s.With(sum);
}

// The same random numbers between other bounds, or with another mean and deviation.
Duals RngTangent(TangentStep& s) {
  const Shape& shape = s.i.shape();
  const Value a = Spread(s.x(0), shape), b = Spread(s.x(1), shape), y = s.result();
  const Value ta = Spread(s.TangentOrZeros(0), shape), tb = Spread(s.TangentOrZeros(1), shape);
  if (s.i.attrs_as<hlo::RngAttrs>().distribution == hlo::RngDistribution::kNormal)
    return s.With((ta + tb * ((y - a) / ZeroAsOne(b))).op);
  return s.With((ta + (tb - ta) * ((y - a) / ZeroAsOne(b - a))).op);
}

namespace {

// By a rule of the user's, of arrays alone.
Duals UserTangent(TangentStep& s, const CustomCallRules& rules) {
  std::vector<Op> operands, tangents;
  for (const Dual& part : s.AllParts()) {
    operands.push_back(part.x);
    if (HasTangents(part.x.shape()))
      tangents.push_back(part.active() ? part.t : s.b.ZerosLike(part.x));
  }
  const std::vector<Op> made = CustomTangents(s.b, s.i, rules, operands, s.results(), tangents);
  std::vector<Op> of_results;
  std::size_t next = 0;
  for (const Op result : s.results())
    of_results.push_back(HasTangents(result.shape()) && next < made.size() ? made[next++] : Op());
  return s.With(of_results);
}

}  // namespace

Duals CustomCallTangent(TangentStep& s) {
  const std::string& target = s.i.attrs_as<hlo::CustomCallAttrs>().custom_call_target;
  if (IsAnnotation(target)) return LinearTangent(s);
  if (target == "TopK" || target == "mhlo.topk") return TopkTangent(s);
  if (std::optional<Duals> made = LapackTangent(s, target)) return *std::move(made);
  if (const auto rules = FindCustomCallRules(s.i.attrs_as<hlo::CustomCallAttrs>());
      rules != nullptr && (rules->tangent || rules->cotangent))
    return UserTangent(s, *rules);
  return s.Error(Unimplemented("no derivative of custom-call \"", target, "\""));
}

}  // namespace lazuli::lowering
