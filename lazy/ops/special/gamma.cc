#include "lazy/ops/special/gamma.h"

#include <array>
#include <cmath>
#include <limits>
#include <numbers>

#include "ir/support/wrong_type.h"
#include "lazy/ops/core/dims.h"
#include "lazy/ops/core/wide.h"
#include "lazy/ops/elementwise/composite.h"
#include "lazy/ops/elementwise/in_double.h"
#include "lazy/ops/special/zeta.h"

namespace lazuli::lazy {
namespace {

using lowering::Opcode;
using Direction = hlo::ComparisonDirection;

}  // namespace

lowering::Op LgammaOp::Lower(lowering::Builder& b, lowering::Op in) const {
  constexpr double kG = 7;
  constexpr std::array kCoefficients = {
      676.520368121885098567009190444019, -1259.13921672240287047156078755283,
      771.3234287776530788486528258894,   -176.61502916214059906584551354,
      12.507343278686904814458936853,     -0.13857109526572011689554707,
      9.984369578019570859563e-6,         1.50563273514931155834e-7};
  return InDouble(b, in, [&](lowering::Op x, const Wide64& w) {
    const auto log = [&](lowering::Op v) { return b.Unary(Opcode::kLog, v); };
    const lowering::Op reflect = b.Compare(Direction::kLt, x, w(0.5));
    // Of 1 - x below 0.5: gamma(x) gamma(1 - x) = pi / sin(pi x).
    const lowering::Op z = b.Select(reflect, b.Unary(Opcode::kNegate, x), w.Plus(x, -1));
    lowering::Op sum = w(0.99999999999980993227684700473478);
    for (std::size_t i = 0; i < kCoefficients.size(); ++i) {
      sum = b.Plus(sum, b.DividedBy(w(kCoefficients[i]), w.Plus(z, static_cast<double>(i) + 1)));
    }
    const lowering::Op t = w.Plus(z, kG + 0.5);
    const lowering::Op log_gamma = b.Plus(
        w.Plus(b.Minus(b.Times(w.Plus(z, 0.5), log(t)), t), 0.91893853320467274178032973640562),
        log(sum));
    const lowering::Op magnitude = b.Unary(Opcode::kAbs, x);
    const lowering::Op fraction = b.Minus(magnitude, b.Unary(Opcode::kFloor, magnitude));
    const lowering::Op less =
        b.Select(b.Compare(Direction::kGt, fraction, w(0.5)), b.Minus(w(1), fraction), fraction);
    const lowering::Op sine = b.Unary(Opcode::kSine, w.Times(less, std::numbers::pi));
    const lowering::Op reflected =
        b.Minus(b.Minus(w(1.1447298858494001741434273513530587), log(sine)), log_gamma);
    const lowering::Op pole = b.Binary(Opcode::kAnd, b.Compare(Direction::kLe, x, w(0)),
                                       b.Compare(Direction::kEq, fraction, w(0)));
    const lowering::Op infinite =
        b.Binary(Opcode::kOr, pole, b.Compare(Direction::kEq, magnitude, w(kInfinity)));
    const lowering::Op zero = b.Binary(Opcode::kOr, b.Compare(Direction::kEq, x, w(1)),
                                       b.Compare(Direction::kEq, x, w(2)));
    // Next to 0 gamma(x) is 1 / x in all its digits.
    const lowering::Op tiny = b.Compare(Direction::kLt, magnitude, w(1e-20));
    const lowering::Op finite = b.Select(tiny, b.Unary(Opcode::kNegate, log(magnitude)),
                                         b.Select(reflect, reflected, log_gamma));
    return b.Select(infinite, w(kInfinity), b.Select(zero, w(0), finite));
  });
}

Tensors LgammaOp::Vjp(const Saved& s, const Tensor& dy) const { return {dy * Digamma(s.x())}; }
Tensor Lgamma(const Tensor& x) { return Record(LgammaOp{}, Floating(x)); }

// By the recurrence to where the asymptotic series is exact, and by reflection below 0, in f64.
Tensor Digamma(const Tensor& in) {
  const Tensor narrow = Floating(in);
  if (!IsFloat(narrow.dtype()))
    ThrowRecordError("digamma", WrongType("takes real numbers, not ", in.shape()));
  const Tensor x = To(narrow, DType::kF64);
  const Value zero = Number0(x), one = Number1(x);
  const Tensor below = Lt(x, zero), reflected = Where(below, 1.0 - x, x);
  constexpr int kSteps = 10;
  Tensor sum, z = reflected;
  for (int i = 0; i < kSteps; ++i) {
    const Tensor inverse = 1.0 / z;
    sum = sum.defined() ? sum + inverse : inverse;
    z = z + 1.0;
  }
  const Tensor inverse = 1.0 / z, square = inverse * inverse;
  // Bernoulli numbers over 2k.
  const Tensor tail =
      square *
      (1.0 / 12 - square * (1.0 / 120 -
                            square * (1.0 / 252 -
                                      square * (1.0 / 240 -
                                                square * (1.0 / 132 - square * (691.0 / 32760))))));
  const Tensor positive = Log(z) - inverse * 0.5 - tail - sum;
  const Tensor fraction = x - Trunc(x);
  const Tensor angle = Where(below, fraction, Constant(0.25, x.dtype())) * std::numbers::pi;
  const Tensor cotangent = Cos(angle) / Sin(angle) * std::numbers::pi;
  const Tensor y = Where(below, positive - cotangent, positive);
  // At 0 the sign of the zero says from which side; at other poles there is no limit.
  const Tensor pole = LogicalAnd(below, Eq(fraction, zero));
  const Tensor at_zero = Where(Signbit(x), Infinite(x), Infinite(x, -1));
  const Tensor with_poles =
      Where(pole, Constant(std::numeric_limits<double>::quiet_NaN(), x.dtype()),
            Where(Eq(x, zero), at_zero, Where(Eq(x, Infinite(x)), Infinite(x), y)));
  return To(with_poles, narrow.dtype());
}

// (-1)^(n + 1) n! zeta(n + 1, x). Below 0, where f is the fraction of x, the terms up to f are those
// of zeta(1 - f) that zeta(1 - x) has not got.
Tensor Polygamma(int64_t n, const Tensor& in) {
  if (n < 0) ThrowRecordError("polygamma", InvalidArgument("n must not be negative, is ", n));
  if (n == 0) return Digamma(in);
  const Tensor narrow = Floating(in);
  if (!IsFloat(narrow.dtype()))
    ThrowRecordError("polygamma", WrongType("takes real numbers, not ", in.shape()));
  const Tensor x = To(narrow, DType::kF64);
  const double s = static_cast<double>(n) + 1;
  const Value one = Number1(x);
  const Tensor below = Lt(Detach(x), Number0(x));
  const Tensor pole = Eq(Floor(Detach(x)), Detach(x)),
               between = LogicalAnd(below, LogicalNot(pole));
  const Tensor fraction = Where(between, x - Floor(x), one);
  const Tensor positive = Where(below, fraction, x);
  const Tensor beyond = HurwitzZeta(s, Where(between, Ceil(x) - x, one)) -
                        HurwitzZeta(s, Where(between, 1.0 - x, one));
  const double parity = n % 2 == 0 ? -1 : 1;  // of s
  const Tensor zeta = HurwitzZeta(s, positive);
  const Tensor sum = Where(below, Where(pole, Infinite(x), zeta + beyond * parity), zeta);
  return To(sum * (parity * std::tgamma(s)), narrow.dtype());
}

Tensor Mvlgamma(const Tensor& in, int64_t p) {
  if (p < 1)
    ThrowRecordError("mvlgamma", InvalidArgument("p has to be greater than or equal to 1, is ", p));
  const Tensor x = Floating(in);
  if (!IsFloat(x.dtype()))
    ThrowRecordError("mvlgamma", WrongType("takes real numbers, not ", in.shape()));
  Dims terms = DimsOf(x.shape());
  terms.push_back(p);
  CheckShape("mvlgamma", terms, DType::kF64);
  const auto n = static_cast<double>(p);
  return InWide(x, [&](const Tensor& wide) {
    const Tensor less = Arange(p, wide.dtype(), x.device()) * 0.5;
    const Tensor sum = Sum(Lgamma(Unsqueeze(wide, -1) - less), {-1});
    return sum + n * (n - 1) / 4 * std::log(std::numbers::pi);
  });
}

}  // namespace lazuli::lazy
