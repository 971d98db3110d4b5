// The incomplete gamma functions: the power series up to x = a + 1, beyond it the continued fraction of Legendre by the
// algorithm of Lentz, and for a from 10^5 on the uniform expansion of Temme (1979).
#include "lazy/ops/special/incomplete_gamma.h"

#include <array>
#include <cmath>
#include <limits>
#include <numbers>

#include "ir/support/wrong_type.h"
#include "lazy/ops/elementwise/in_double.h"
#include "lazy/ops/elementwise/loops.h"

namespace lazuli::lazy {
namespace {

using lowering::Opcode;
using Compared = hlo::ComparisonDirection;

constexpr double kNoBound = std::numeric_limits<double>::infinity();
constexpr double kUnsaid = std::numeric_limits<double>::quiet_NaN();
constexpr double kDigits = 1e-17;  // terms below this part of a sum do not count
// Where the fraction ends: a step changes it by less than this part. The bound is above the rounding
// of a step, for among many elements one would round otherwise in every step.
constexpr double kClose = 2e-15;
constexpr double kUniformFrom = 1e5;
constexpr double kMostSteps =
    1e5;  // of the fraction, which needs some thousands below kUniformFrom

lowering::Op Negated(lowering::Builder& b, lowering::Op x) { return b.Unary(Opcode::kNegate, x); }

// The sum of x^n / ((a + 1) ... (a + n)).
lowering::Op Series(lowering::Builder& builder, const Wide64& w, lowering::Op a, lowering::Op x) {
  const lowering::Ops sum = LoopWhile(
      builder, {w(1), w(1), a, x},
      [](lowering::Builder& b, const Wide64& r, const lowering::Ops& s) {
        return b.Compare(Compared::kGt, s[0], r.Times(s[1], kDigits));
      },
      [](lowering::Builder& b, const Wide64& r, const lowering::Ops& s) {
        const lowering::Op next = r.Plus(s[2], 1), term = b.Times(s[0], b.DividedBy(s[3], next));
        return lowering::Ops{term, b.Plus(s[1], term), next, s[3]};
      });
  return sum[1];
}

// 1 / (x + 1 - a - 1 (1 - a) / (x + 3 - a - 2 (2 - a) / (x + 5 - a - ...))), x above a.
lowering::Op Fraction(lowering::Builder& builder, const Wide64& w, lowering::Op a, lowering::Op x) {
  constexpr double kTiny = 1e-300;
  const lowering::Op first = w.Plus(builder.Minus(x, a), 1);
  const lowering::Op inverse = builder.DividedBy(w(1), first);
  // h, the last change, i, b, c, d, a.
  const lowering::Ops end = LoopWhile(
      builder, {inverse, w(2), w(1), first, w(1 / kTiny), inverse, a},
      [](lowering::Builder& b, const Wide64& r, const lowering::Ops& s) {
        const lowering::Op change = b.Unary(Opcode::kAbs, r.Plus(s[1], -1));
        return b.Binary(Opcode::kAnd, b.Compare(Compared::kGt, change, r(kClose)),
                        b.Compare(Compared::kLt, s[2], r(kMostSteps)));
      },
      [](lowering::Builder& b, const Wide64& r, const lowering::Ops& s) {
        const auto not_zero = [&](lowering::Op v) {
          const lowering::Op small = b.Compare(Compared::kLt, b.Unary(Opcode::kAbs, v), r(kTiny));
          return b.Select(small, r(kTiny), v);
        };
        const lowering::Op i = s[2], numerator = b.Times(i, b.Minus(s[6], i));
        const lowering::Op next = r.Plus(s[3], 2);
        const lowering::Op d = b.DividedBy(r(1), not_zero(b.Plus(b.Times(numerator, s[5]), next)));
        const lowering::Op c = not_zero(b.Plus(next, b.DividedBy(numerator, s[4])));
        const lowering::Op change = b.Times(c, d);
        return lowering::Ops{b.Times(s[0], change), change, r.Plus(i, 1), next, c, d, s[6]};
      });
  return end[0];
}

// log(gamma(a)) for a from 0 on, by Stirling's series from 10 on.
lowering::Op LogGamma(lowering::Builder& b, const Wide64& w, lowering::Op a) {
  constexpr int kSteps = 10;
  lowering::Op product = w(1), z = a;
  for (int i = 0; i < kSteps; ++i) {
    const lowering::Op below = b.Compare(Compared::kLt, z, w(kSteps));
    product = b.Select(below, b.Times(product, z), product);
    z = b.Select(below, w.Plus(z, 1), z);
  }
  const lowering::Op inverse = b.DividedBy(w(1), z), square = b.Times(inverse, inverse);
  const lowering::Op tail = b.Times(
      inverse, w.Polynomial(square, {-3617.0 / 122400, 1.0 / 156, -691.0 / 360360, 1.0 / 1188,
                                     -1.0 / 1680, 1.0 / 1260, -1.0 / 360, 1.0 / 12}));
  const lowering::Op log = b.Unary(Opcode::kLog, z);
  const lowering::Op rest = b.Minus(b.Times(w.Plus(z, -0.5), log), z);
  const lowering::Op stirling = b.Plus(w.Plus(rest, 0.5 * std::log(2 * std::numbers::pi)), tail);
  return b.Minus(stirling, b.Unary(Opcode::kLog, product));
}

// x^a exp(-x) / gamma(a).
lowering::Op Weight(lowering::Builder& b, const Wide64& w, lowering::Op a, lowering::Op x) {
  const lowering::Op log = b.Unary(Opcode::kLog, x);
  return b.Unary(Opcode::kExponential, b.Minus(b.Minus(b.Times(a, log), x), LogGamma(b, w, a)));
}

// The upper function for large a.
lowering::Op UniformExpansion(lowering::Builder& b, const Wide64& w, lowering::Op a,
                              lowering::Op x) {
  // eta^2 / 2 = mu - log(1 + mu), of the sign of mu = x / a - 1.
  const lowering::Op mu = b.DividedBy(b.Minus(x, a), a);
  const lowering::Op exact = b.Minus(mu, b.Unary(Opcode::kLogPlusOne, mu));
  const lowering::Op series =
      b.Times(b.Times(mu, mu), w.Polynomial(mu, {1.0 / 10, -1.0 / 9, 1.0 / 8, -1.0 / 7, 1.0 / 6,
                                                 -1.0 / 5, 1.0 / 4, -1.0 / 3, 1.0 / 2}));
  const lowering::Op is_small = b.Compare(Compared::kLt, b.Unary(Opcode::kAbs, mu), w(0.01));
  const lowering::Op half_square = b.Select(is_small, series, exact);
  const lowering::Op root = b.Unary(Opcode::kSqrt, w.Times(half_square, 2));
  const lowering::Op eta = b.Select(b.Compare(Compared::kLt, mu, w(0)), Negated(b, root), root);
  // Far out it is infinite, or its powers are; what they are multiplied by is 0 there.
  const lowering::Op bounded =
      b.Binary(Opcode::kMaximum, b.Binary(Opcode::kMinimum, eta, w(1e3)), w(-1e3));
  const lowering::Op c0 = w.Polynomial(
      bounded, {0.39192631785224377e-4, -0.17875514403292181e-3, 0.35273368606701940e-3,
                0.11574074074074074e-2, -0.14814814814814815e-1, 0.83333333333333333e-1,
                -0.33333333333333333});
  const lowering::Op c1 = w.Polynomial(bounded, {-0.99022633744855967e-3, 0.26455026455026455e-2,
                                                 -0.34722222222222222e-2, -0.18518518518518519e-2});
  const lowering::Op terms = b.Plus(c0, b.DividedBy(c1, a));
  const lowering::Op decay = b.Unary(Opcode::kExponential, Negated(b, b.Times(a, half_square)));
  const lowering::Op rest =
      b.DividedBy(b.Times(terms, decay), b.Unary(Opcode::kSqrt, w.Times(a, 2 * std::numbers::pi)));
  // erfc as 1 - erf: what is lost far out is below the digits of the result beside 1.
  const lowering::Op scaled = b.Times(eta, b.Unary(Opcode::kSqrt, w.Times(a, 0.5)));
  const lowering::Op bell = w.Times(b.Minus(w(1), b.Unary(Opcode::kErf, scaled)), 0.5);
  return b.Plus(bell, rest);
}

// Both shares as (lower, upper) of numbers that are neither 0 nor infinite.
std::pair<lowering::Op, lowering::Op> Shares(lowering::Builder& b, const Wide64& w, lowering::Op a,
                                             lowering::Op x) {
  const lowering::Op is_large = b.Compare(Compared::kGe, a, w(kUniformFrom));
  const lowering::Op is_near = b.Compare(Compared::kLt, x, w.Plus(a, 1));
  const auto one_unless = [&](lowering::Op taken, lowering::Op v, double other) {
    return b.Select(taken, v, w(other));
  };
  const lowering::Op by_series = b.Binary(Opcode::kAnd, is_near, b.Unary(Opcode::kNot, is_large));
  const lowering::Op by_fraction =
      b.Binary(Opcode::kAnd, b.Unary(Opcode::kNot, is_near), b.Unary(Opcode::kNot, is_large));
  const lowering::Op weight = Weight(b, w, a, x);
  const lowering::Op lower =
      b.Times(b.DividedBy(weight, a),
              Series(b, w, one_unless(by_series, a, 1), one_unless(by_series, x, 0)));
  const lowering::Op upper =
      b.Times(weight, Fraction(b, w, one_unless(by_fraction, a, 1), one_unless(by_fraction, x, 3)));
  const lowering::Op uniform = UniformExpansion(b, w, one_unless(is_large, a, kUniformFrom), x);
  const auto rest = [&](lowering::Op v) { return b.Minus(w(1), v); };
  const auto chosen = [&](lowering::Op large, lowering::Op near, lowering::Op far) {
    return b.Select(is_large, large, b.Select(is_near, near, far));
  };
  return {chosen(rest(uniform), lower, rest(upper)), chosen(uniform, rest(lower), upper)};
}

}  // namespace

lowering::Op IncompleteGammaOp::Lower(lowering::Builder& b, lowering::Op in_a,
                                      lowering::Op in_x) const {
  const auto [narrow_a, narrow_x] = Prepare(Accepts::kFloat, in_a, in_x);
  if (!IsFloat(narrow_a.dtype()))
    return b.Error(WrongType("takes real numbers, not ", in_a.shape(), " and ", in_x.shape()));
  if (b.shapes_only()) return narrow_a;
  const lowering::Op a = b.Convert(narrow_a, DType::kF64), x = b.Convert(narrow_x, DType::kF64);
  const Wide64 w{b, a};
  const auto is = [&](lowering::Op v, Compared relation, double bound) {
    return b.Compare(relation, v, w(bound));
  };
  const auto both = [&](lowering::Op l, lowering::Op r) { return b.Binary(Opcode::kAnd, l, r); };
  const auto either = [&](lowering::Op l, lowering::Op r) { return b.Binary(Opcode::kOr, l, r); };
  const auto plain = [&](lowering::Op v) {
    return both(is(v, Compared::kGt, 0), is(v, Compared::kLt, kNoBound));
  };
  const lowering::Op usual = both(plain(a), plain(x));
  const auto [low, high] = Shares(b, w, b.Select(usual, a, w(1)), b.Select(usual, x, w(1)));
  const double full = upper ? 0 : 1, none = upper ? 1 : 0;
  lowering::Op y = b.Select(usual, upper ? high : low, w(full));  // a = 0 or x infinite
  const lowering::Op at_zero = both(is(x, Compared::kEq, 0), is(a, Compared::kGt, 0));
  y = b.Select(either(at_zero, is(a, Compared::kEq, kNoBound)), w(none), y);
  const lowering::Op both_zero = both(is(a, Compared::kEq, 0), is(x, Compared::kEq, 0));
  const lowering::Op both_infinite =
      both(is(a, Compared::kEq, kNoBound), is(x, Compared::kEq, kNoBound));
  const auto wrong = [&](lowering::Op v) {
    return either(is(v, Compared::kLt, 0), b.Compare(Compared::kNe, v, v));
  };
  const lowering::Op undefined =
      either(either(both_zero, both_infinite), either(wrong(a), wrong(x)));
  return b.Convert(b.Select(undefined, w(kUnsaid), y), narrow_a.dtype());
}

Tensors IncompleteGammaOp::Vjp(const Saved& s, const Tensor& dy) const {
  Tensors grads(2);
  if (s.needs(0)) {
    ThrowRecordError(upper ? "igammac" : "igamma",
                     Unimplemented("has no gradient of the first operand"));
  }
  const Tensor a = To(s.x(0), dy.dtype()), x = To(s.x(1), dy.dtype());
  const Tensor density = Exp((a - 1.0) * Log(x) - x - Lgamma(a));
  grads[1] = SumToShape(dy * (upper ? -density : density), s.shape(1));
  return grads;
}

Tensor Igamma(const Tensor& x, const Tensor& y) { return Record(IncompleteGammaOp{false}, x, y); }
Tensor Igammac(const Tensor& x, const Tensor& y) { return Record(IncompleteGammaOp{true}, x, y); }

}  // namespace lazuli::lazy
