// The series and the continued fractions of the incomplete gamma and beta functions, with their derivatives for the
// parameter beside them; for a gamma parameter from 10^5 on the expansion of Cornish and Fisher (1938).
#include "lazy/ops/special/sample_gradients.h"

#include "ir/support/wrong_type.h"
#include "lazy/ops/elementwise/loops.h"

namespace lazuli::lazy {
namespace {

using lowering::Opcode;
using Is = hlo::ComparisonDirection;

constexpr double kExpandFrom = 1e5;
// Where a fraction ends: its last factor differs from 1 by less than this. The bound is above the
// rounding of a step, for among many elements one would round otherwise in every step.
constexpr double kFactorClose = 2e-15;
// And the derivative of that factor is below this; rounding keeps it from becoming much less.
constexpr double kSlopeClose = 1e-12;
constexpr double kFractionSteps = 1e5;

// A number and its derivative for the parameter.
struct Dual {
  lowering::Op v, d;
};

// Arithmetic on numbers with their derivatives.
struct Duals {
  lowering::Builder& b;
  const Wide64& w;
  Dual Number(double v) const { return {w(v), w(0)}; }
  Dual Plus(const Dual& x, double y) const { return {w.Plus(x.v, y), x.d}; }
  Dual Plus(const Dual& x, const Dual& y) const { return {b.Plus(x.v, y.v), b.Plus(x.d, y.d)}; }
  Dual Times(const Dual& x, const Dual& y) const {
    return {b.Times(x.v, y.v), b.Plus(b.Times(x.d, y.v), b.Times(x.v, y.d))};
  }
  Dual Times(const Dual& x, lowering::Op y) const { return {b.Times(x.v, y), b.Times(x.d, y)}; }
  Dual Over(const Dual& x, const Dual& y) const {
    const lowering::Op v = b.DividedBy(x.v, y.v);
    return {v, b.DividedBy(b.Minus(x.d, b.Times(v, y.d)), y.v)};
  }
  Dual NotZero(const Dual& x) const {
    const lowering::Op is_small = b.Compare(Is::kLt, b.Unary(Opcode::kAbs, x.v), w(1e-300));
    return {b.Select(is_small, w(1e-300), x.v), x.d};
  }
};

// A fraction by the algorithm of Lentz: h, the convergents' quotients c and d, and the last change.
struct Lentz {
  Dual h, c, d, change;
  // One more term, numerator / (denominator + ...).
  Lentz After(const Duals& f, const Dual& numerator, const Dual& denominator) const {
    const Dual next_d = f.Over(f.Number(1), f.NotZero(f.Plus(f.Times(numerator, d), denominator)));
    const Dual next_c = f.NotZero(f.Plus(denominator, f.Over(numerator, c)));
    const Dual factor = f.Times(next_c, next_d);
    return {f.Times(h, factor), next_c, next_d, factor};
  }
  lowering::Ops State() const { return {h.v, h.d, c.v, c.d, d.v, d.d, change.v, change.d}; }
  static Lentz Of(const lowering::Ops& s) {
    return {{s[0], s[1]}, {s[2], s[3]}, {s[4], s[5]}, {s[6], s[7]}};
  }
};

constexpr std::size_t kLentzState = 8;

// Whether a step still changes the fraction or its derivative; the step's number is s[kLentzState].
lowering::Op FractionMoves(lowering::Builder& b, const Wide64& w, const lowering::Ops& s) {
  const auto above = [&](lowering::Op v, double bound) {
    return b.Compare(Is::kGt, b.Unary(Opcode::kAbs, v), w(bound));
  };
  const lowering::Op moves =
      b.Binary(Opcode::kOr, above(w.Plus(s[6], -1), kFactorClose), above(s[7], kSlopeClose));
  return b.Binary(Opcode::kAnd, moves, b.Compare(Is::kLt, s[kLentzState], w(kFractionSteps)));
}

// The sum of x^n / (a (a + 1) ... (a + n)).
Dual GammaSeries(lowering::Builder& builder, const Wide64& wide, lowering::Op a, lowering::Op x) {
  const Duals duals{builder, wide};
  const Dual first = duals.Over(duals.Number(1), {a, wide(1)});
  const lowering::Ops sum = LoopWhile(
      builder, {first.v, first.d, first.v, first.d, a, x},
      [](lowering::Builder& b, const Wide64& w, const lowering::Ops& s) {
        const auto counts = [&](lowering::Op term, lowering::Op of) {
          return b.Compare(Is::kGt, b.Unary(Opcode::kAbs, term),
                           w.Times(b.Unary(Opcode::kAbs, of), 1e-17));
        };
        return b.Binary(Opcode::kOr, counts(s[0], s[2]), counts(s[1], s[3]));
      },
      [](lowering::Builder& b, const Wide64& w, const lowering::Ops& s) {
        const Duals f{b, w};
        const lowering::Op next = w.Plus(s[4], 1);
        const Dual term = f.Over(f.Times({s[0], s[1]}, s[5]), {next, w(1)});
        const Dual total = f.Plus({s[2], s[3]}, term);
        return lowering::Ops{term.v, term.d, total.v, total.d, next, s[5]};
      });
  return {sum[2], sum[3]};
}

// 1 / (x + 1 - a - 1 (1 - a) / (x + 3 - a - 2 (2 - a) / (x + 5 - a - ...))), x above a.
Dual GammaFraction(lowering::Builder& builder, const Wide64& wide, lowering::Op a, lowering::Op x) {
  const Duals duals{builder, wide};
  const Dual bottom = {wide.Plus(builder.Minus(x, a), 1), wide(-1)};
  const Dual first = duals.Over(duals.Number(1), bottom);
  lowering::Ops begin = Lentz{first, duals.Number(1e300), first, duals.Number(2)}.State();
  begin.insert(begin.end(), {wide(1), bottom.v, a});
  const lowering::Ops end =
      LoopWhile(builder, begin, FractionMoves,
                [](lowering::Builder& b, const Wide64& w, const lowering::Ops& s) {
                  const Duals f{b, w};
                  const lowering::Op i = s[8], next = w.Plus(s[9], 2);
                  const Dual numerator = {b.Times(i, b.Minus(s[10], i)), i};
                  lowering::Ops after = Lentz::Of(s).After(f, numerator, {next, w(-1)}).State();
                  after.insert(after.end(), {w.Plus(i, 1), next, s[10]});
                  return after;
                });
  return {end[0], end[1]};
}

// The derivative by the expansion, at the normal number n that belongs to x.
lowering::Op GammaExpansion(lowering::Builder& b, const Wide64& w, lowering::Op a, lowering::Op x) {
  const lowering::Op root = b.Unary(Opcode::kSqrt, a);
  const lowering::Op third = b.Binary(Opcode::kPower, b.DividedBy(x, a), w(1.0 / 3));
  const lowering::Op shift = b.DividedBy(w(1.0 / 9), a);
  const lowering::Op n = w.Times(b.Times(root, b.Plus(w.Plus(third, -1), shift)), 3);
  const lowering::Op cubic = b.Times(n, w.Plus(b.Times(n, n), -7));
  const lowering::Op first = w.Plus(b.DividedBy(w.Times(n, 0.5), root), 1);
  return b.Minus(first, b.DividedBy(w.Times(cubic, 1.0 / 72), b.Times(a, root)));
}

// The incomplete beta function divided by x^a (1 - x)^b / (a beta(a, b)). The derivatives of a and b
// are 1 for the one that the result's derivative is for, and 0 for the other.
Dual BetaFraction(lowering::Builder& builder, const Wide64& wide, lowering::Op x, const Dual& a,
                  const Dual& b) {
  const Duals duals{builder, wide};
  const Dual sum = duals.Plus(a, b);
  const Dual ratio = duals.Times(duals.Over(sum, duals.Plus(a, 1)), x);
  const Dual first = duals.Over(
      duals.Number(1),
      duals.NotZero({builder.Minus(wide(1), ratio.v), builder.Unary(Opcode::kNegate, ratio.d)}));
  lowering::Ops begin = Lentz{first, duals.Number(1), first, duals.Number(2)}.State();
  begin.insert(begin.end(), {wide(1), x, a.v, a.d, b.v, b.d});
  const lowering::Ops end = LoopWhile(
      builder, begin, FractionMoves,
      [](lowering::Builder& in, const Wide64& w, const lowering::Ops& s) {
        const Duals f{in, w};
        const lowering::Op m = s[8], z = s[9];
        const Dual p = {s[10], s[11]}, q = {s[12], s[13]}, index = {m, w(0)};
        const auto minus = [&](const Dual& y) {
          return Dual{in.Unary(Opcode::kNegate, y.v), in.Unary(Opcode::kNegate, y.d)};
        };
        const Dual even = f.Plus(p, {w.Times(m, 2), w(0)});
        const Dual one = f.Over(f.Times(f.Times(f.Plus(q, minus(index)), m), z),
                                f.Times(f.Plus(even, -1), even));
        const Dual other =
            minus(f.Over(f.Times(f.Times(f.Plus(p, index), f.Plus(f.Plus(p, q), index)), z),
                         f.Times(even, f.Plus(even, 1))));
        Lentz next = Lentz::Of(s).After(f, one, f.Number(1)).After(f, other, f.Number(1));
        lowering::Ops after = next.State();
        after.push_back(w.Plus(m, 1));
        after.insert(after.end(), s.begin() + 9, s.end());
        return after;
      });
  return {end[0], end[1]};
}

}  // namespace

lowering::Op GammaSlopeOp::Lower(lowering::Builder& b, lowering::Op a, lowering::Op x,
                                 lowering::Op psi) const {
  if (b.shapes_only()) return a;
  const Wide64 w{b, a};
  const lowering::Op is_large = b.Compare(Is::kGe, a, w(kExpandFrom));
  const lowering::Op is_near = b.Compare(Is::kLt, x, w.Plus(a, 1));
  const auto only = [&](lowering::Op near, lowering::Op v, double other) {
    const lowering::Op taken = b.Binary(Opcode::kAnd, near, b.Unary(Opcode::kNot, is_large));
    return b.Select(taken, v, w(other));
  };
  const lowering::Op is_far = b.Unary(Opcode::kNot, is_near);
  const Dual below = GammaSeries(b, w, only(is_near, a, 1), only(is_near, x, 0));
  const Dual above = GammaFraction(b, w, only(is_far, a, 1), only(is_far, x, 3));
  const lowering::Op log = b.Minus(b.Unary(Opcode::kLog, x), psi);
  const auto slope = [&](const Dual& s) { return b.Times(x, b.Plus(b.Times(log, s.v), s.d)); };
  const lowering::Op usual =
      b.Select(is_near, b.Unary(Opcode::kNegate, slope(below)), slope(above));
  return b.Select(is_large, GammaExpansion(b, w, a, x), usual);
}

lowering::Op BetaSlopeOp::Lower(lowering::Builder& builder, lowering::Op x, lowering::Op a,
                                lowering::Op b, lowering::Op psi) const {
  if (builder.shapes_only()) return a;
  const Wide64 w{builder, a};
  const lowering::Op mean = builder.DividedBy(w.Plus(a, 1), w.Plus(builder.Plus(a, b), 2));
  const lowering::Op is_near = builder.Compare(Is::kLt, x, mean);
  const lowering::Op log = builder.Minus(builder.Unary(Opcode::kLog, x), psi);
  // The lower integral with its derivative for its first parameter, or the upper one for its second.
  const Dual one = {builder.Select(is_near, a, b), builder.Select(is_near, w(1), w(0))};
  const Dual other = {builder.Select(is_near, b, a), builder.Select(is_near, w(0), w(1))};
  const lowering::Op at = builder.Select(is_near, x, builder.Minus(w(1), x));
  const Dual h = BetaFraction(builder, w, at, one, other);
  const lowering::Op inverse = builder.DividedBy(w(1), a);
  const lowering::Op lower = builder.Plus(builder.Times(h.v, builder.Minus(log, inverse)), h.d);
  const lowering::Op upper = builder.Plus(builder.Times(h.v, log), h.d);
  const lowering::Op factor = builder.DividedBy(x, one.v);
  return builder.Select(is_near, builder.Unary(Opcode::kNegate, builder.Times(factor, lower)),
                        builder.Times(factor, upper));
}

namespace {

Tensor WideFloats(std::string_view op, const Tensor& x) {
  if (!IsFloat(x.dtype())) ThrowRecordError(op, WrongType("takes floats, not ", x.shape()));
  return To(Detach(x), DType::kF64);
}

}  // namespace

Tensor StandardGammaGrad(const Tensor& x, const Tensor& output) {
  constexpr char kOp[] = "standard_gamma_grad";
  if (x.shape().dims() != output.shape().dims()) {
    ThrowRecordError(kOp, InvalidArgument("takes x and output of the same dims, not ", x.shape(),
                                          " and ", output.shape()));
  }
  const Tensor a = WideFloats(kOp, x), sample = WideFloats(kOp, output);
  const Tensor slope = Record(GammaSlopeOp{}, a, sample, Digamma(a));
  return To(slope, x.dtype());
}

Tensor DirichletGrad(const Tensor& x, const Tensor& alpha, const Tensor& total) {
  constexpr char kOp[] = "dirichlet_grad";
  if (x.shape().dims() != alpha.shape().dims() || x.shape().dims() != total.shape().dims()) {
    ThrowRecordError(kOp, InvalidArgument("takes x, alpha and total of the same dims, not ",
                                          x.shape(), ", ", alpha.shape(), " and ", total.shape()));
  }
  const Tensor sample = WideFloats(kOp, x), a = WideFloats(kOp, alpha),
               sum = WideFloats(kOp, total);
  const Tensor slope = Record(BetaSlopeOp{}, sample, a, sum - a, Digamma(a) - Digamma(sum));
  return To(slope, x.dtype());
}

}  // namespace lazuli::lazy
