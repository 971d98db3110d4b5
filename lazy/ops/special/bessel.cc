// Bessel functions by Chebyshev series: near 0 with the logarithm or the power that they have there, beyond as waves or as
// what decays, whose amplitudes are series in 1 / x.
#include "lazy/ops/special/bessel.h"

#include <cmath>
#include <limits>
#include <numbers>

#include "lazy/ops/elementwise/in_double.h"
#include "lazy/ops/special/bessel_tables.h"

namespace lazuli::lazy {
namespace {

using lowering::Builder;
using lowering::Opcode;
using Order = hlo::ComparisonDirection;
using B = lowering::Op;

constexpr double kPi = std::numbers::pi;
constexpr double kUnbounded = std::numeric_limits<double>::infinity();
constexpr double kUndefined = std::numeric_limits<double>::quiet_NaN();

// A function of the size of x, in pieces: where it is at most `limit`, and beyond.
class PiecewiseArgument {
 public:
  PiecewiseArgument(Builder& b, const Wide64& w, B x, double limit)
      : b_(b), w_(w), is_near_(b.Compare(Order::kLe, x, w(limit))) {
    near_ = b.Select(is_near_, x, w(limit));
    far_ = b.Select(is_near_, w(limit), x);
  }
  B near() const { return near_; }  // x there, elsewhere the limit
  B far() const { return far_; }
  B Join(B of_near, B of_far) const { return b_.Select(is_near_, of_near, of_far); }

 private:
  Builder& b_;
  const Wide64& w_;
  B is_near_, near_, far_;
};

// The wave at x from 8 on: with P, Q and the angle x - pi / 4 or x - 3 pi / 4.
struct Wave {
  B cosine, sine;  // of the amplitudes P and 8 / x Q, and the root
};
template <std::size_t kP, std::size_t kQ>
Wave WaveAt(Builder& b, const Wide64& w, B x, int order, const double (&p)[kP],
            const double (&q)[kQ]) {
  const B inverse = b.DividedBy(w(8), x);
  const B t = w.Plus(w.Times(b.Times(inverse, inverse), 2), -1);
  const B root = w.Times(b.Unary(Opcode::kRsqrt, x), 1 / std::sqrt(kPi));
  const B even = b.Times(root, w.Chebyshev(t, p));
  const B odd = b.Times(root, b.Times(inverse, w.Chebyshev(t, q)));
  const B c = b.Unary(Opcode::kCosine, x), s = b.Unary(Opcode::kSine, x);
  // Both times sqrt(2), which the root lacks.
  const B cosine = order == 0 ? b.Plus(c, s) : b.Minus(s, c);
  const B sine = order == 0 ? b.Minus(s, c) : b.Unary(Opcode::kNegate, b.Plus(s, c));
  return {b.Minus(b.Times(even, cosine), b.Times(odd, sine)),
          b.Plus(b.Times(even, sine), b.Times(odd, cosine))};
}

Wave FarWave(Builder& b, const Wide64& w, B x, int order) {
  return order == 0 ? WaveAt(b, w, x, 0, internal::kP0, internal::kQ0)
                    : WaveAt(b, w, x, 1, internal::kP1, internal::kQ1);
}

// t of the tables of J and Y, x at most 8; of I and K, x at most 2.
B SquareArgument(Builder& b, const Wide64& w, B x, double limit) {
  return w.Plus(w.Times(b.Times(x, x), 2 / (limit * limit)), -1);
}

B NearJ(Builder& b, const Wide64& w, B x, int order) {
  const B t = SquareArgument(b, w, x, 8);
  return order == 0 ? w.Chebyshev(t, internal::kJ0) : b.Times(x, w.Chebyshev(t, internal::kJ1));
}

// NaN of a wave whose angle is lost, as PyTorch has it of infinity.
B J(Builder& b, const Wide64& w, B x, int order) {
  const PiecewiseArgument pieces(b, w, b.Unary(Opcode::kAbs, x), 8);
  const B y =
      pieces.Join(NearJ(b, w, pieces.near(), order), FarWave(b, w, pieces.far(), order).cosine);
  if (order == 0) return y;
  return b.Select(b.Compare(Order::kLt, x, w(0)), b.Unary(Opcode::kNegate, y), y);
}

// The value at 0, NaN below, y elsewhere.
B AbovePole(Builder& b, const Wide64& w, B x, B y, double pole) {
  const B below = b.Select(b.Compare(Order::kLt, x, w(0)), w(kUndefined), y);
  return b.Select(b.Compare(Order::kEq, x, w(0)), w(pole), below);
}

B Y(Builder& b, const Wide64& w, B x, int order) {
  const PiecewiseArgument pieces(b, w, x, 8);
  const B near = pieces.near(), t = SquareArgument(b, w, near, 8);
  const B product = b.Times(b.Unary(Opcode::kLog, near), NearJ(b, w, near, order));
  const B rest =
      order == 0 ? w.Chebyshev(t, internal::kY0) : b.Times(near, w.Chebyshev(t, internal::kY1));
  const B singular = order == 0 ? product : b.Minus(product, b.DividedBy(w(1), near));
  const B y = pieces.Join(b.Plus(w.Times(singular, 2 / kPi), rest),
                          FarWave(b, w, pieces.far(), order).sine);
  return AbovePole(b, w, x, y, -kUnbounded);
}

B K(Builder& b, const Wide64& w, B x, int order, bool scaled) {
  const PiecewiseArgument pieces(b, w, x, 2);
  const B near = pieces.near(), t = SquareArgument(b, w, near, 2);
  const B log = b.Unary(Opcode::kLog, w.Times(near, 0.5));
  B y;
  if (order == 0) {
    y = b.Minus(w.Chebyshev(t, internal::kK0), b.Times(log, w.Chebyshev(t, internal::kI0)));
  } else {
    const B i1 = b.Times(near, w.Chebyshev(t, internal::kI1));
    y = b.Plus(b.DividedBy(w.Chebyshev(t, internal::kK1), near), b.Times(log, i1));
  }
  if (scaled) y = b.Times(y, b.Unary(Opcode::kExponential, near));
  const B far = pieces.far(), u = w.Plus(b.DividedBy(w(4), far), -1);
  B end = b.Times(order == 0 ? w.Chebyshev(u, internal::kK0Far) : w.Chebyshev(u, internal::kK1Far),
                  b.Unary(Opcode::kRsqrt, far));
  if (!scaled) end = b.Times(end, b.Unary(Opcode::kExponential, b.Unary(Opcode::kNegate, far)));
  return AbovePole(b, w, x, pieces.Join(y, end), kUnbounded);
}

// 2/3 x^(3/2).
B Zeta23(Builder& b, const Wide64& w, B x) {
  return w.Times(b.Times(x, b.Unary(Opcode::kSqrt, x)), 2.0 / 3);
}
B FourthRoot(Builder& b, B x) { return b.Unary(Opcode::kSqrt, b.Unary(Opcode::kSqrt, x)); }

B AiryBeyond2(Builder& b, const Wide64& w, B x) {
  const double least = 4 * std::sqrt(2.0) / 3;  // zeta of 2
  const B zeta = Zeta23(b, w, x), t = w.Plus(b.DividedBy(w(2 * least), zeta), -1);
  const B decay = b.Unary(Opcode::kExponential, b.Unary(Opcode::kNegate, zeta));
  return b.DividedBy(b.Times(w.Chebyshev(t, internal::kAiryDecay), decay),
                     w.Times(FourthRoot(b, x), 2 * std::sqrt(kPi)));
}

// Of -x, x from 4 on.
B AiryBelow4(Builder& b, const Wide64& w, B x) {
  const B zeta = Zeta23(b, w, x), inverse = b.DividedBy(w(1), zeta);
  const double least = 16.0 / 3;  // zeta of 4
  const B t = w.Plus(w.Times(b.Times(inverse, inverse), 2 * least * least), -1);
  const B c = b.Unary(Opcode::kCosine, zeta), s = b.Unary(Opcode::kSine, zeta);
  const B f = b.Times(w.Chebyshev(t, internal::kAiryF), b.Plus(s, c));
  const B g = b.Times(b.Times(inverse, w.Chebyshev(t, internal::kAiryG)), b.Minus(c, s));
  return b.DividedBy(b.Minus(f, g), w.Times(FourthRoot(b, x), std::sqrt(2 * kPi)));
}

B Airy(Builder& b, const Wide64& w, B x) {
  const PiecewiseArgument right(b, w, x, 2), left(b, w, b.Unary(Opcode::kNegate, right.near()), 4);
  const B middle = w.Chebyshev(w.Times(w.Plus(b.Unary(Opcode::kNegate, left.near()), 1), 1.0 / 3),
                               internal::kAiry);
  const B y =
      right.Join(left.Join(middle, AiryBelow4(b, w, left.far())), AiryBeyond2(b, w, right.far()));
  const B infinite = b.Compare(Order::kEq, b.Unary(Opcode::kAbs, x), w(kUnbounded));
  return b.Select(infinite, w(kUndefined), y);
}

B Function(Builder& b, const Wide64& w, B x, Bessel function) {
  switch (function) {
    case Bessel::kJ0:
      return J(b, w, x, 0);
    case Bessel::kJ1:
      return J(b, w, x, 1);
    case Bessel::kY0:
      return Y(b, w, x, 0);
    case Bessel::kY1:
      return Y(b, w, x, 1);
    case Bessel::kK0:
      return K(b, w, x, 0, /*scaled=*/false);
    case Bessel::kK1:
      return K(b, w, x, 1, /*scaled=*/false);
    case Bessel::kScaledK0:
      return K(b, w, x, 0, /*scaled=*/true);
    case Bessel::kScaledK1:
      return K(b, w, x, 1, /*scaled=*/true);
    case Bessel::kAiry:
      return Airy(b, w, x);
  }
  return x;
}

Tensor Of(Bessel function, const Tensor& x) {
  return Record(BesselOp{function}, Floating(Detach(x)));
}

}  // namespace

lowering::Op BesselOp::Lower(lowering::Builder& b, lowering::Op in) const {
  return InDouble(b, in, [&](lowering::Op x, const Wide64& w) {
    const lowering::Op y = Function(b, w, x, function);
    return b.Select(b.Compare(Order::kEq, x, x), y, x);
  });
}

Tensor BesselJ0(const Tensor& x) { return Of(Bessel::kJ0, x); }
Tensor BesselJ1(const Tensor& x) { return Of(Bessel::kJ1, x); }
Tensor BesselY0(const Tensor& x) { return Of(Bessel::kY0, x); }
Tensor BesselY1(const Tensor& x) { return Of(Bessel::kY1, x); }
Tensor ModifiedBesselK0(const Tensor& x) { return Of(Bessel::kK0, x); }
Tensor ModifiedBesselK1(const Tensor& x) { return Of(Bessel::kK1, x); }
Tensor ScaledModifiedBesselK0(const Tensor& x) { return Of(Bessel::kScaledK0, x); }
Tensor ScaledModifiedBesselK1(const Tensor& x) { return Of(Bessel::kScaledK1, x); }
Tensor AiryAi(const Tensor& x) { return Of(Bessel::kAiry, x); }
Tensor ModifiedBesselI0(const Tensor& x) { return Detach(I0(x)); }
Tensor ModifiedBesselI1(const Tensor& x) { return Detach(I1(x)); }

Tensor SphericalBesselJ0(const Tensor& in) {
  const Tensor narrow = Floating(Detach(in));
  if (!IsFloat(narrow.dtype()))
    ThrowRecordError("spherical_bessel_j0", WrongType("takes real numbers, not ", in.shape()));
  const Tensor x = To(narrow, DType::kF64);
  const Tensor none = Eq(x, Constant(0, DType::kF64));
  const Tensor endless = Eq(Abs(x), Constant(kUnbounded, DType::kF64));
  const Tensor ratio = Sin(x) / Where(none, Constant(1, DType::kF64), x);
  return To(Where(none, Constant(1, DType::kF64), Where(endless, Constant(0, DType::kF64), ratio)),
            narrow.dtype());
}

}  // namespace lazuli::lazy
