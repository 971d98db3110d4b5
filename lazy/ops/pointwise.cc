#include "lazy/ops/pointwise.h"

#include <array>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <numbers>

#include "ir/support/wrong_type.h"
#include "lazy/ops/default_type.h"
#include "lazy/ops/elementwise.h"
#include "lazy/ops/gradient_ops.h"
#include "lazy/ops/in_double.h"
#include "lazy/ops/wide.h"
#include "lazy/ops/zeta.h"

namespace lazuli::lazy {
namespace {

using lowering::Opcode;
using Direction = hlo::ComparisonDirection;

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kTwoOverRootPi = 2 * std::numbers::inv_sqrtpi;

Value Number0(const Tensor& x) { return Constant(0, x.dtype()); }
Value Number1(const Tensor& x) { return Constant(1, x.dtype()); }
Value Infinite(const Tensor& x, double sign = 1) { return Constant(sign * kInfinity, x.dtype()); }

// The largest number of a float type that tensors compute in.
double FiniteMax(DType dtype) {
  switch (dtype) {
    case DType::kF16:
      return 65504;
    case DType::kBF16:
      return 0x1.fep127;
    case DType::kF32:
      return std::numeric_limits<float>::max();
    default:
      return std::numeric_limits<double>::max();
  }
}

Tensor TruncFloats(const Tensor& x) { return Where(Lt(x, Number0(x)), Ceil(x), Floor(x)); }

// The operands in their common dtype, of floats; a number as rank 0.
std::pair<Tensor, Tensor> Together(std::string_view op, const Operand& in_x, const Operand& in_y) {
  const backend::Device device = (in_x.tensor() != nullptr ? in_x : in_y).tensor()->device();
  const auto tensor = [&](const Operand& o) {
    return o.tensor() != nullptr ? *o.tensor() : Full({}, o.number(), device);
  };
  const Tensor x = tensor(in_x), y = tensor(in_y);
  const absl::StatusOr<DType> common = CommonType(x.shape(), y.shape());
  if (!common.ok()) ThrowRecordError(op, common.status());
  const DType dtype = IsFloat(*common) || IsComplex(*common) ? *common : DefaultFloat();
  return {To(x, dtype), To(y, dtype)};
}

}  // namespace

namespace {

// erfc(z) of z from 0 on is t exp(sum - z^2 - rest).
struct Tail {
  lowering::Op t, sum, rest;
};

// The rational Chebyshev approximation of Press et al., Numerical Recipes (2007), 6.2.2.
Tail ErfcTail(lowering::Builder& b, const Wide64& w, lowering::Op z) {
  constexpr std::array kCoefficients = {-1.3026537197817094,
                                        6.4196979235649026e-1,
                                        1.9476473204185836e-2,
                                        -9.561514786808631e-3,
                                        -9.46595344482036e-4,
                                        3.66839497852761e-4,
                                        4.2523324806907e-5,
                                        -2.0278578112534e-5,
                                        -1.624290004647e-6,
                                        1.303655835580e-6,
                                        1.5626441722e-8,
                                        -8.5238095915e-8,
                                        6.529054439e-9,
                                        5.059343495e-9,
                                        -9.91364156e-10,
                                        -2.27365122e-10,
                                        9.6467911e-11,
                                        2.394038e-12,
                                        -6.886027e-12,
                                        8.94487e-13,
                                        3.13092e-13,
                                        -1.12708e-13,
                                        3.81e-16,
                                        7.106e-15,
                                        -1.523e-15,
                                        -9.4e-17,
                                        1.21e-16,
                                        -2.8e-17};
  const lowering::Op t = b.DividedBy(w(2), w.Plus(z, 2));
  const lowering::Op ty = w.Plus(w.Times(t, 4), -2);
  lowering::Op d = w(0), dd = w(0);
  for (std::size_t j = kCoefficients.size() - 1; j > 0; --j) {
    const lowering::Op before = d;
    d = w.Plus(b.Minus(b.Times(ty, d), dd), kCoefficients[j]);
    dd = before;
  }
  return {t, w.Times(w.Plus(b.Times(ty, d), kCoefficients[0]), 0.5), dd};
}

}  // namespace

lowering::Op ErfcOp::Lower(lowering::Builder& b, lowering::Op in) const {
  return InDouble(b, in, [&](lowering::Op x, const Wide64& w) {
    const lowering::Op z = b.Unary(Opcode::kAbs, x);
    const auto [t, sum, rest] = ErfcTail(b, w, z);
    const lowering::Op exponent = b.Minus(b.Minus(sum, b.Times(z, z)), rest);
    const lowering::Op tail = b.Times(t, b.Unary(Opcode::kExponential, exponent));
    // Below 0.5 the difference loses nothing.
    const lowering::Op near = b.Minus(w(1), b.Unary(Opcode::kErf, x));
    const lowering::Op far =
        b.Select(b.Compare(Direction::kLt, x, w(0)), b.Minus(w(2), tail), tail);
    return b.Select(b.Compare(Direction::kLt, z, w(0.5)), near, far);
  });
}

Tensors ErfcOp::Vjp(const Saved& s, const Tensor& dy) const {
  const Tensor x = s.x();
  return {dy * (Exp(-(x * x)) * -kTwoOverRootPi)};
}

lowering::Op ErfcxOp::Lower(lowering::Builder& b, lowering::Op in) const {
  return InDouble(b, in, [&](lowering::Op x, const Wide64& w) {
    const lowering::Op z = b.Unary(Opcode::kAbs, x);
    const auto [t, sum, rest] = ErfcTail(b, w, z);
    const lowering::Op tail = b.Times(t, b.Unary(Opcode::kExponential, b.Minus(sum, rest)));
    const lowering::Op scale = b.Unary(Opcode::kExponential, b.Times(x, x));
    const lowering::Op near = b.Times(scale, b.Minus(w(1), b.Unary(Opcode::kErf, x)));
    const lowering::Op below = b.Minus(w.Times(scale, 2), tail);
    const lowering::Op far = b.Select(b.Compare(Direction::kLt, x, w(0)), below, tail);
    return b.Select(b.Compare(Direction::kLt, z, w(0.5)), near, far);
  });
}

Tensors ErfcxOp::Vjp(const Saved& s, const Tensor& dy) const {
  return {dy * (s.x() * s.y() * 2.0 - kTwoOverRootPi)};
}

lowering::Op ErfinvOp::Lower(lowering::Builder& b, lowering::Op in) const {
  return InDouble(b, in, [&](lowering::Op y, const Wide64& w) {
    const lowering::Op magnitude = b.Unary(Opcode::kAbs, y);
    const lowering::Op z = b.Times(y, y);
    const lowering::Op central = b.DividedBy(
        b.Times(y, w.Polynomial(z, {-0.140543331, 0.914624893, -1.645349621, 0.886226899})),
        w.Polynomial(z, {0.012229801, -0.329097515, 1.442710462, -2.118377725, 1}));
    const lowering::Op half = w.Times(b.Minus(w(1), magnitude), 0.5);
    const lowering::Op r =
        b.Unary(Opcode::kSqrt, b.Unary(Opcode::kNegate, b.Unary(Opcode::kLog, half)));
    const lowering::Op ratio =
        b.DividedBy(w.Polynomial(r, {1.641345311, 3.429567803, -1.624906493, -1.970840454}),
                    w.Polynomial(r, {1.637067800, 3.543889200, 1}));
    const lowering::Op tail = b.Times(b.Unary(Opcode::kSign, y), ratio);
    lowering::Op x = b.Select(b.Compare(Direction::kLe, magnitude, w(0.7)), central, tail);
    for (int step = 0; step < 2; ++step) {
      const lowering::Op slope = w.Times(
          b.Unary(Opcode::kExponential, b.Unary(Opcode::kNegate, b.Times(x, x))), kTwoOverRootPi);
      x = b.Minus(x, b.DividedBy(b.Minus(b.Unary(Opcode::kErf, x), y), slope));
    }
    const lowering::Op end = b.Times(b.Unary(Opcode::kSign, y), w(kInfinity));
    return b.Select(b.Compare(Direction::kEq, magnitude, w(1)), end, x);
  });
}

Tensors ErfinvOp::Vjp(const Saved& s, const Tensor& dy) const {
  const Tensor y = s.y();
  return {dy * (Exp(y * y) * (1 / kTwoOverRootPi))};
}

lowering::Op LogitOp::Lower(lowering::Builder& b, lowering::Op in) const {
  const lowering::Op x = Prepare(Accepts::kFloat, in);
  if (!IsFloat(x.dtype())) return b.Error(WrongType("takes real numbers, not ", in.shape()));
  const lowering::Op rest = b.Minus(b.Full(x.shape(), 1), x);
  return b.Unary(Opcode::kLog, b.DividedBy(x, rest));
}

// Beyond [0, 1], where there is no logarithm, NaN.
Tensors LogitOp::Vjp(const Saved& s, const Tensor& dy) const {
  const Tensor x = s.x(), product = x * (1.0 - x);
  const Tensor outside = LogicalOr(Lt(x, Number0(x)), Gt(x, Number1(x)));
  const Value nan = Constant(std::numeric_limits<double>::quiet_NaN(), x.dtype());
  return {dy / Where(outside, nan, product)};
}

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

lowering::Op SignBitOp::Lower(lowering::Builder& b, lowering::Op x) const {
  if (IsComplex(x.dtype())) return b.Error(WrongType("takes real numbers, not ", x.shape()));
  if (!IsFloat(x.dtype())) {
    return x.dtype() == DType::kPred || IsUnsigned(x.dtype())
               ? b.Full(Shape(DType::kPred, x.shape().dims()), 0)
               : b.Compare(Direction::kLt, x, b.ZerosLike(x));
  }
  // A quotient of 1 has the sign of a zero; NaN, which is not below anything, that of its bits.
  const DType bits = ByteWidth(x.dtype()) == 8   ? DType::kS64
                     : ByteWidth(x.dtype()) == 4 ? DType::kS32
                     : ByteWidth(x.dtype()) == 2 ? DType::kS16
                                                 : DType::kS8;
  const Shape shape(bits, x.shape().dims());
  const lowering::Op word = b.Add(Opcode::kBitcastConvert, {x}, hlo::NoAttrs{}, {}, &shape);
  return b.Compare(Direction::kLt, word, b.ZerosLike(word));
}

lowering::Op GcdOp::Lower(lowering::Builder& b, lowering::Op in_x, lowering::Op in_y) const {
  auto [x, y] = Prepare(Accepts::kInteger, in_x, in_y);
  if (!IsIntegral(x.dtype())) return b.Error(WrongType("takes integers, not ", x.shape()));
  if (b.shapes_only()) return x;
  const Shape shape = x.shape(), pair = Shape::Tuple({shape, shape});
  const auto zeros = [&](lowering::Builder& r) { return r.Full(shape, 0); };
  hlo::Computation* left = b.Region("left", {pair}, [&](lowering::Builder& r, auto p) {
    const lowering::Op some = r.Compare(Direction::kNe, r.GetTupleElement(p[0], 1), zeros(r));
    Dims dims;
    for (int64_t d = 0; d < shape.rank(); ++d) dims.push_back(d);
    return r.Reduce(Opcode::kOr, some, dims);
  });
  // (x, y) becomes (y, x % y), and stays where y is 0.
  hlo::Computation* step = b.Region("step", {pair}, [&](lowering::Builder& r, auto p) {
    const lowering::Op a = r.GetTupleElement(p[0], 0), d = r.GetTupleElement(p[0], 1);
    const lowering::Op done = r.Compare(Direction::kEq, d, zeros(r));
    const lowering::Op safe = r.Select(done, r.Full(shape, 1), d);
    return r.Tuple(
        {r.Select(done, a, d), r.Select(done, d, r.Binary(Opcode::kRemainder, a, safe))});
  });
  const lowering::Op divisor = b.GetTupleElement(b.While(b.Tuple({x, y}), left, step), 0);
  return IsUnsigned(x.dtype()) ? divisor : b.Unary(Opcode::kAbs, divisor);
}

lowering::Op NextAfterOp::Lower(lowering::Builder& b, lowering::Op in_x, lowering::Op in_y) const {
  auto [x, y] = Prepare(Accepts::kReal, in_x, in_y);
  if (!IsFloat(x.dtype()) || ByteWidth(x.dtype()) < 2)
    return b.Error(WrongType("takes floats, not ", in_x.shape(), " and ", in_y.shape()));
  const DType type = ByteWidth(x.dtype()) == 8   ? DType::kS64
                     : ByteWidth(x.dtype()) == 4 ? DType::kS32
                                                 : DType::kS16;
  const Shape bits(type, x.shape().dims()), floats = x.shape();
  const auto cast = [&](lowering::Op v, const Shape& to) {
    return b.Add(Opcode::kBitcastConvert, {v}, hlo::NoAttrs{}, {}, &to);
  };
  const auto number = [&](double v) { return b.Full(bits, v); };
  const lowering::Op zero = b.ZerosLike(x);
  // Away from 0 the magnitude grows by one bit.
  const lowering::Op up = b.Compare(Direction::kGt, y, x);
  const lowering::Op positive = b.Compare(Direction::kGt, x, zero);
  const lowering::Op grows = b.Compare(Direction::kEq, up, positive);
  const lowering::Op next =
      cast(b.Plus(cast(x, bits), b.Select(grows, number(1), number(-1))), floats);
  const lowering::Op least = cast(number(1), floats);
  const lowering::Op beside_zero = b.Select(up, least, b.Unary(Opcode::kNegate, least));
  const lowering::Op moved = b.Select(b.Compare(Direction::kEq, x, zero), beside_zero, next);
  const lowering::Op same = b.Select(b.Compare(Direction::kEq, x, y), y, moved);
  const lowering::Op nan =
      b.Binary(Opcode::kOr, b.Compare(Direction::kNe, x, x), b.Compare(Direction::kNe, y, y));
  return b.Select(nan, b.Plus(x, y), same);
}

Tensors NextAfterOp::Vjp(const Saved& s, const Tensor& dy) const {
  const Tensor stays = Eq(s.x(0), s.x(1));
  return {SumToShape(Where(stays, Constant(0, dy.dtype()), dy), s.shape(0)), Tensor()};
}

// Up to 20 the power series, beyond the asymptotic one, whose terms shrink there.
lowering::Op BesselIOp::Lower(lowering::Builder& b, lowering::Op in) const {
  return InDouble(b, in, [&](lowering::Op x, const Wide64& w) {
    constexpr double kFar = 20;
    constexpr int kTerms = 60, kFarTerms = 20;
    const auto n = static_cast<double>(order);
    const lowering::Op size = b.Unary(Opcode::kAbs, x);
    const lowering::Op is_far = b.Compare(Direction::kGt, size, w(kFar));
    const lowering::Op near = b.Select(is_far, w(kFar), size);
    const lowering::Op half = w.Times(near, 0.5), square = b.Times(half, half);
    lowering::Op series = w(1);
    for (int k = kTerms; k > 0; --k)
      series = w.Plus(b.Times(series, w.Times(square, 1 / (k * (k + n)))), 1);
    if (order == 1) series = b.Times(series, half);
    const lowering::Op decay = b.Unary(Opcode::kExponential, b.Unary(Opcode::kNegate, near));
    if (scaled) series = b.Times(series, decay);
    const lowering::Op far = b.Select(is_far, size, w(kFar)), inverse = b.DividedBy(w(1), far);
    lowering::Op tail = w(1);
    for (int k = kFarTerms; k > 0; --k) {
      const double odd = 2.0 * k - 1;
      tail = w.Plus(b.Times(tail, w.Times(inverse, (odd * odd - 4 * n * n) / (8.0 * k))), 1);
    }
    // What is infinite anyway has a root that is not 0: their product would be no number.
    const lowering::Op held = scaled ? far : b.Binary(Opcode::kMinimum, far, w(1e4));
    const lowering::Op root =
        w.Times(b.Unary(Opcode::kRsqrt, held), 1 / std::sqrt(2 * std::numbers::pi));
    lowering::Op end = b.Times(tail, root);
    if (!scaled) end = b.Times(end, b.Unary(Opcode::kExponential, far));
    const lowering::Op y = b.Select(is_far, end, series);
    const lowering::Op signed_y =
        order == 1 ? b.Select(b.Compare(Direction::kLt, x, w(0)), b.Unary(Opcode::kNegate, y), y)
                   : y;
    return b.Select(b.Compare(Direction::kEq, x, x), signed_y, x);
  });
}

// i0' = i1, and i1' = i0 - i1 / x; scaled ones lose themselves with the sign of x.
Tensors BesselIOp::Vjp(const Saved& s, const Tensor& dy) const {
  const Tensor x = s.x();
  const Tensor other = Record(BesselIOp{1 - order, scaled}, x);
  Tensor slope = other;
  if (order == 1) {
    // Next to 0, where half of x may be no number.
    const Tensor none = Lt(Abs(Detach(x)), Constant(1e-30, x.dtype()));
    const Tensor ratio = s.y() / Where(none, Number1(x), x);
    slope = Where(none, Constant(0.5, x.dtype()), other - ratio);
  }
  if (scaled) slope = slope - Sign(x) * s.y();
  return {dy * slope};
}

lowering::Op HypotOp::Lower(lowering::Builder& b, lowering::Op in_x, lowering::Op in_y) const {
  auto [l, r] = Prepare(Accepts::kFloat, in_x, in_y);
  if (!IsFloat(l.dtype()))
    return b.Error(WrongType("takes floats, not ", in_x.shape(), " and ", in_y.shape()));
  const lowering::Op x = b.Unary(Opcode::kAbs, l), y = b.Unary(Opcode::kAbs, r);
  const lowering::Op high = b.Maximum(x, y), low = b.Minimum(x, y);
  const auto number = [&](double v) { return b.Full(high.shape(), v); };
  const lowering::Op none = b.Compare(Direction::kEq, high, number(0));
  const lowering::Op ratio = b.DividedBy(low, b.Select(none, number(1), high));
  const lowering::Op root = b.Unary(Opcode::kSqrt, b.Plus(number(1), b.Times(ratio, ratio)));
  const lowering::Op infinite =
      b.Binary(Opcode::kOr, b.Compare(Direction::kEq, x, number(kInfinity)),
               b.Compare(Direction::kEq, y, number(kInfinity)));
  return b.Select(infinite, number(kInfinity), b.Times(high, root));
}

Tensors HypotOp::Vjp(const Saved& s, const Tensor& dy) const {
  Tensors grads(2);
  for (std::size_t i = 0; i < 2; ++i) {
    if (s.needs(i)) grads[i] = SumToShape(dy * (To(s.x(i), dy.dtype()) / s.y()), s.shape(i));
  }
  return grads;
}

// --- functions of one operand

Tensor Trunc(const Tensor& x) {
  if (IsFloat(x.dtype())) return TruncFloats(x);
  if (IsIntegral(x.dtype())) return Clone(x);
  ThrowRecordError("trunc", WrongType("takes integers or floats, not ", x.shape()));
}

Tensor Frac(const Tensor& x) {
  if (!IsFloat(x.dtype())) ThrowRecordError("frac", WrongType("takes floats, not ", x.shape()));
  return x - Trunc(x);
}

Tensor Exp2(const Tensor& in) {
  const Tensor x = Floating(in);
  if (!IsComplex(x.dtype())) return Pow(Constant(2, x.dtype()), x);
  // Each part by itself, as in LogToBase(): a product of complex numbers is NaN where one is
  // infinite.
  return Exp(Complex(Real(x) * std::numbers::ln2, Imag(x) * std::numbers::ln2));
}

namespace {
// log(x) over the logarithm of a base.
Tensor LogToBase(const Tensor& x, double log_base) {
  return InWide(Floating(x), [&](const Tensor& wide) {
    const Tensor log = Log(wide);
    // Each part by itself: a quotient of complex numbers is NaN where one is infinite.
    if (IsComplex(log.dtype())) return Complex(Real(log) / log_base, Imag(log) / log_base);
    return log / log_base;
  });
}
}  // namespace
Tensor Log2(const Tensor& x) { return LogToBase(x, std::numbers::ln2); }
Tensor Log10(const Tensor& x) { return LogToBase(x, std::numbers::ln10); }

Tensor Erfc(const Tensor& x) { return Record(ErfcOp{}, Floating(x)); }
Tensor Erfinv(const Tensor& x) { return Record(ErfinvOp{}, Floating(x)); }
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
  const Tensor fraction = x - TruncFloats(x);
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

Tensor Deg2rad(const Tensor& x) { return Floating(x) * (std::numbers::pi / 180); }
Tensor Rad2deg(const Tensor& x) { return Floating(x) * (180 / std::numbers::pi); }

Tensor Sinc(const Tensor& in) {
  return InWide(Floating(in), [](const Tensor& wide) {
    const Tensor x = wide * std::numbers::pi;
    // Where the sine is x in all its digits, and squares of x in gradients would be none.
    const double small = x.dtype() == DType::kF64 || x.dtype() == DType::kC128 ? 1e-150 : 1e-18;
    const Tensor size = Abs(Detach(x)), none = Lt(size, Constant(small, size.dtype()));
    const Tensor safe = Where(none, Number1(x), x);
    return Where(none, Number1(x), Sin(safe) / safe);
  });
}

Tensor I0(const Tensor& x) { return Record(BesselIOp{0, false}, Floating(x)); }

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

Tensor Round(const Tensor& x, int64_t decimals) {
  if (!IsFloat(x.dtype())) {
    if (IsIntegral(x.dtype())) return Clone(x);
    ThrowRecordError("round", WrongType("takes integers or floats, not ", x.shape()));
  }
  return InWide(x, [&](const Tensor& wide) {
    const double power = std::pow(10.0, std::abs(static_cast<double>(decimals)));
    return decimals < 0 ? Round(wide / power) * power : Round(wide * power) / power;
  });
}

Tensor Logit(const Tensor& in, std::optional<double> eps) {
  const Tensor x = Floating(in);
  if (!eps) return Record(LogitOp{}, x);
  return Record(LogitOp{},
                ClampBetween(x, Constant(*eps, x.dtype()), Constant(1 - *eps, x.dtype())));
}

Tensor NanToNum(const Tensor& x, std::optional<double> nan, std::optional<double> posinf,
                std::optional<double> neginf) {
  if (IsComplex(x.dtype())) {
    return Complex(NanToNum(Real(x), nan, posinf, neginf), NanToNum(Imag(x), nan, posinf, neginf));
  }
  if (!IsFloat(x.dtype())) return Clone(x);
  const double most = FiniteMax(x.dtype());
  const Tensor numbers = Where(Ne(x, x), Constant(nan.value_or(0), x.dtype()), x);
  const Tensor above =
      Where(Eq(x, Infinite(x)), Constant(posinf.value_or(most), x.dtype()), numbers);
  return Where(Eq(x, Infinite(x, -1)), Constant(neginf.value_or(-most), x.dtype()), above);
}

Tensor Signbit(const Tensor& x) { return Record(SignBitOp{}, x); }

namespace {
Tensor IsInfinity(std::string_view op, const Tensor& x, double sign) {
  if (IsComplex(x.dtype())) ThrowRecordError(op, WrongType("takes real numbers, not ", x.shape()));
  if (IsFloat(x.dtype())) return Eq(x, Infinite(x, sign));
  return FullConstant(Shape(DType::kPred, x.shape().dims()), 0, x.device());
}
}  // namespace
Tensor Isposinf(const Tensor& x) { return IsInfinity("isposinf", x, 1); }
Tensor Isneginf(const Tensor& x) { return IsInfinity("isneginf", x, -1); }
Tensor Isreal(const Tensor& x) {
  if (!IsComplex(x.dtype()))
    return FullConstant(Shape(DType::kPred, x.shape().dims()), 1, x.device());
  const Tensor imag = Imag(x);
  return Eq(imag, Number0(imag));
}
Tensor Sgn(const Tensor& x) {
  if (!IsComplex(x.dtype())) return Sign(x);
  const Tensor size = Abs(x), none = Eq(Detach(size), Number0(size));
  return Where(none, Number0(x), x / Where(none, Number1(size), size));
}
Tensor Positive(const Tensor& x) {
  if (x.dtype() == DType::kPred)
    ThrowRecordError("positive", WrongType("takes no pred, but ", x.shape()));
  return x;
}

// --- of two

Tensor Hypot(const Tensor& x, const Tensor& y) { return Record(HypotOp{}, x, y); }

Tensor Gcd(const Tensor& x, const Tensor& y) { return Record(GcdOp{}, x, y); }
Tensor Lcm(const Tensor& x, const Tensor& y) {
  const Tensor divisor = Gcd(x, y), none = Eq(divisor, Number0(divisor));
  return Abs(FloorDivide(x, Where(none, Number1(divisor), divisor)) * y);
}
Tensor Nextafter(const Tensor& x, const Tensor& y) { return Record(NextAfterOp{}, x, y); }

Tensor Copysign(const Operand& in_x, const Operand& in_y) {
  const auto [x, y] = Together("copysign", in_x, in_y);
  const Tensor zero = Eq(x, Number0(x));  // whose gradient is 0
  const Tensor magnitude = Where(zero, Number0(x), Abs(x));
  return Unaffected(Where(Signbit(y), -magnitude, magnitude), y);
}

namespace {
// log(exp(x) + exp(y)) of x and y times `scale`, over it.
Tensor LogOfSum(const Tensor& x, const Tensor& y, double scale) {
  if (IsComplex(x.dtype())) {  // whose order is that of their real parts
    const Tensor first = Ge(Real(x), Real(y));
    const Tensor same = LogicalAnd(Eq(x, y), Eq(Abs(Real(x)), Infinite(Real(x))));
    const Tensor large = Where(first, x, y), small = Where(first, y, x);
    const Tensor apart = Where(same, Number0(x), small - large) * scale;
    return large + Log1p(Exp(apart)) / scale;
  }
  const Tensor same = LogicalAnd(Eq(x, y), Eq(Abs(x), Infinite(x)));
  const Tensor apart = Where(same, Number0(x), x - y) * scale;
  return Where(same, x,
               Where(Ge(x, y), x - LogSigmoid(apart) / scale, y - LogSigmoid(-apart) / scale));
}
}  // namespace
Tensor Logaddexp(const Tensor& in_x, const Tensor& in_y) {
  const auto [x, y] = Together("logaddexp", in_x, in_y);
  return LogOfSum(x, y, 1);
}
Tensor Logaddexp2(const Tensor& in_x, const Tensor& in_y) {
  const auto [x, y] = Together("logaddexp2", in_x, in_y);
  return LogOfSum(x, y, std::numbers::ln2);
}

Tensor Xlogy(const Operand& in_x, const Operand& in_y) {
  const auto [x, y] = Together("xlogy", in_x, in_y);
  // What would make NaN of a product with 0.
  const Tensor endless = LogicalOr(Le(y, Number0(y)), Eq(y, Infinite(y)));
  const Tensor none = LogicalAnd(Eq(x, Number0(x)), endless);
  return x * Log(Where(none, Number1(y), y));
}

namespace {
// The one that `wins`, or that is alone a number; the first of equals.
Tensor AmongNumbers(std::string_view op, const Tensor& in_x, const Tensor& in_y,
                    Tensor (*wins)(const Operand&, const Operand&)) {
  const absl::StatusOr<DType> common = CommonType(in_x.shape(), in_y.shape());
  if (!common.ok()) ThrowRecordError(op, common.status());
  const Tensor x = To(in_x, *common), y = To(in_y, *common);
  return Where(LogicalOr(wins(x, y), Ne(y, y)), x, y);
}
}  // namespace
Tensor Fmax(const Tensor& x, const Tensor& y) { return AmongNumbers("fmax", x, y, &Ge); }
Tensor Fmin(const Tensor& x, const Tensor& y) { return AmongNumbers("fmin", x, y, &Le); }

Tensor Heaviside(const Tensor& x, const Tensor& values) {
  if (x.dtype() != values.dtype()) {
    ThrowRecordError("heaviside", WrongType("takes values of the dtype of x, ", x.shape(), ", not ",
                                            values.shape()));
  }
  const Tensor detached = Detach(x);
  return Where(Eq(detached, Number0(x)), Detach(values), To(Gt(detached, Number0(x)), x.dtype()));
}

namespace {
bool IsOfIntegers(const Tensor& x) { return IsIntegral(x.dtype()) || x.dtype() == DType::kPred; }

// The dtype of what is computed from both, with the dims of the one that has more.
Shape Together(std::string_view op, const Shape& x, const Shape& y) {
  const absl::StatusOr<DType> common = CommonType(x, y);
  if (!common.ok()) ThrowRecordError(op, common.status());
  return Shape(*common, (x.rank() < y.rank() ? y : x).dims());
}
}  // namespace
Tensor Ldexp(const Tensor& x, const Tensor& other) {
  const DType common = Together("ldexp", x.shape(), other.shape()).dtype();
  // A common dtype of integers need not hold the exponent.
  const Tensor y = IsFloat(common) || IsComplex(common) ? To(other, common) : Floating(other);
  const Value two = Constant(2, y.dtype());
  if (!IsFloat(y.dtype()) || !IsIntegral(other.dtype())) return Mul(x, Pow(two, y));
  // A power of a whole number is a sum of steps, which leaves numbers that the power itself is beyond. Three steps lead from the
  // largest number to the smallest.
  const double step = y.dtype() == DType::kF64 ? 733 : y.dtype() == DType::kF16 ? 14 : 100;
  const Tensor bounded = Clamp(y, Number(-3 * step), Number(3 * step));
  const Tensor part = Trunc(bounded / 3.0), scale = Pow(two, part);
  return Mul(Mul(Mul(x, scale), scale), Pow(two, bounded - part * 2.0));
}

Tensor FloatPower(const Tensor& x, const Tensor& exponent) {
  const DType wide =
      IsComplex(x.dtype()) || IsComplex(exponent.dtype()) ? DType::kC128 : DType::kF64;
  return Pow(To(x, wide), To(exponent, wide));
}
Tensor FloatPower(const Number& x, const Tensor& exponent) {
  const bool is_complex = x.is_complex() || IsComplex(exponent.dtype());
  const DType wide = is_complex ? DType::kC128 : DType::kF64;
  return Pow(x.As(wide), To(exponent, wide));
}
Tensor FloatPower(const Tensor& x, const Number& exponent) {
  const Tensor wide = To(x, IsComplex(x.dtype()) ? DType::kC128 : DType::kF64);
  return PowNumber(wide, exponent);
}

namespace {
// x := function(what x is now), in the dtype of a power.
template <class F>
Tensor PowerInPlace(const Tensor& x, bool is_complex, F&& function) {
  const DType wide = is_complex || IsComplex(x.dtype()) ? DType::kC128 : DType::kF64;
  if (x.dtype() != wide) {
    ThrowRecordError("float_power_", InvalidArgument("the result is of ", DTypeText(wide),
                                                     ", which ", x.shape(), " does not hold"));
  }
  Update("float_power_", x, [&] { return function(Snapshot(x)); });
  return x;
}
}  // namespace
Tensor FloatPowerInPlace(const Tensor& x, const Tensor& exponent) {
  return PowerInPlace(x, IsComplex(exponent.dtype()),
                      [&](const Tensor& now) { return FloatPower(now, exponent); });
}
Tensor FloatPowerInPlace(const Tensor& x, const Number& exponent) {
  return PowerInPlace(x, exponent.is_complex(),
                      [&](const Tensor& now) { return FloatPower(now, exponent); });
}

Tensor Isclose(const Tensor& in_x, const Tensor& in_y, double rtol, double atol, bool equal_nan) {
  const Tensor x = Detach(in_x), y = Detach(in_y);
  if (x.dtype() != y.dtype()) {
    ThrowRecordError("isclose",
                     WrongType("takes operands of one dtype, not ", x.shape(), " and ", y.shape()));
  }
  if (!(rtol >= 0 && atol >= 0))
    ThrowRecordError("isclose",
                     InvalidArgument("tolerances must not be negative, are ", rtol, " and ", atol));
  Tensor close = Eq(x, y);
  if (equal_nan) close = LogicalOr(close, LogicalAnd(Ne(x, x), Ne(y, y)));
  if (rtol == 0 && atol == 0) return close;
  const Tensor fx = Floating(x), fy = Floating(y);
  const Tensor apart = Abs(fx - fy), bound = Abs(fy) * rtol + atol;
  return LogicalOr(close, LogicalAnd(Lt(apart, Infinite(apart)), Le(apart, bound)));
}

// --- of three

namespace {
// f of the three in their common dtype; in f32 where all are of 16 bits.
template <class F>
Tensor InWideTogether(std::string_view op, const Tensor& x, const Tensor& first,
                      const Tensor& second, F&& f) {
  const DType common = Together(op, Together(op, x.shape(), first.shape()), second.shape()).dtype();
  const auto wide = [&](const Tensor& t) { return Wide(To(t, common)); };
  return To(f(wide(x), wide(first), wide(second)), common);
}
}  // namespace
Tensor Addcmul(const Tensor& x, const Tensor& first, const Tensor& second, const Number& value) {
  return InWideTogether(
      "addcmul", x, first, second,
      [&](const Tensor& a, const Tensor& b, const Tensor& c) { return Add(a, Mul(b * value, c)); });
}
Tensor Addcdiv(const Tensor& x, const Tensor& first, const Tensor& second, const Number& value) {
  if (IsOfIntegers(first) && IsOfIntegers(second)) {
    ThrowRecordError("addcdiv", WrongType("divides no integers by integers: ", first.shape(),
                                          " by ", second.shape(), "; convert one with to()"));
  }
  return InWideTogether(
      "addcdiv", x, first, second,
      [&](const Tensor& a, const Tensor& b, const Tensor& c) { return Add(a, Div(b * value, c)); });
}

namespace {
// From the nearer end, so that a weight of 1 gives the end.
Tensor Interpolated(const Tensor& x, const Tensor& end, const Tensor& weight) {
  const Tensor apart = end - x, size = Abs(Detach(weight));
  return Where(Lt(size, Constant(0.5, size.dtype())), x + weight * apart,
               end - apart * (1.0 - weight));
}
}  // namespace
Tensor Lerp(const Tensor& x, const Tensor& end, const Number& weight) {
  if (x.dtype() != end.dtype())
    ThrowRecordError(
        "lerp", WrongType("takes operands of one dtype, not ", x.shape(), " and ", end.shape()));
  if (!IsFloat(x.dtype()) && !IsComplex(x.dtype()))
    ThrowRecordError("lerp", WrongType("takes floats, not ", x.shape()));
  const Tensor w = Full({}, weight.Beside(x), x.device());
  return To(Interpolated(x, end, w), x.dtype());
}
Tensor Lerp(const Tensor& x, const Tensor& end, const Tensor& weight) {
  if (x.dtype() != end.dtype() || x.dtype() != weight.dtype())
    ThrowRecordError("lerp", WrongType("takes operands of one dtype, not ", x.shape(), ", ",
                                       end.shape(), " and ", weight.shape()));
  return Interpolated(x, end, weight);
}

Tensor Clamp(const Tensor& in, const Tensor& low, const Tensor& high) {
  if (!low.defined() && !high.defined())
    ThrowRecordError("clamp", InvalidArgument("takes a bound"));
  Tensor x = in;
  // The gradient is that of what is chosen; where one of them is NaN, nothing is.
  const auto bounded = [](const Tensor& beside, const Tensor& inside, const Tensor& outside,
                          const Tensor& bound) {
    const Tensor chosen = Where(inside, beside, bound);
    if (!IsFloat(chosen.dtype())) return chosen;
    const Value none = Constant(std::numeric_limits<double>::quiet_NaN(), chosen.dtype());
    return Where(LogicalOr(inside, outside), chosen, none);
  };
  if (low.defined()) x = bounded(x, Ge(x, low), Lt(x, low), low);
  if (high.defined()) x = bounded(x, Le(x, high), Gt(x, high), high);
  return x;
}

}  // namespace lazuli::lazy
