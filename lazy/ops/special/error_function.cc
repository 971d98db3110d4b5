#include "lazy/ops/special/error_function.h"

#include <array>
#include <cmath>
#include <numbers>

#include "lazy/ops/elementwise/composite.h"
#include "lazy/ops/elementwise/in_double.h"

namespace lazuli::lazy {
namespace {

using lowering::Opcode;
using Direction = hlo::ComparisonDirection;
constexpr double kTwoOverRootPi = 2 * std::numbers::inv_sqrtpi;

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

Tensor Erfc(const Tensor& x) { return Record(ErfcOp{}, Floating(x)); }
Tensor Erfinv(const Tensor& x) { return Record(ErfinvOp{}, Floating(x)); }

Tensor Erfcx(const Tensor& x) { return Record(ErfcxOp{}, Floating(x)); }

Tensor Ndtr(const Tensor& in) {
  return InDoubles("ndtr", in,
                   [](const Tensor& x) { return Erfc(x * -(std::numbers::sqrt2 / 2)) * 0.5; });
}

Tensor LogNdtr(const Tensor& in) {
  return InDoubles("log_ndtr", in, [](const Tensor& x) {
    const Tensor t = x * (std::numbers::sqrt2 / 2), below = Lt(x, F64(-1));
    const Tensor low = Where(below, t, F64(-1)), high = Where(below, F64(0), t);
    return Where(below, Log(Erfcx(-low) * 0.5) - low * low, Log1p(Erfc(high) * -0.5));
  });
}

namespace {

// Where ndtr() is p, which is above 0 and small: steps of Newton on log(ndtr()), which is nearly a parabola there. From the
// first guess on each has twice the digits; the last one knows p, so that it has the gradient.
Tensor LowQuantile(const Tensor& p) {
  constexpr int kSteps = 4;
  const Tensor log = Log(p), given = Detach(log);
  const Tensor far = Sqrt(given * -2.0);
  Tensor x = (Log(far) + 0.5 * std::log(2 * std::numbers::pi)) / far - far;
  for (int i = 1; i <= kSteps; ++i) {
    const Tensor scaled = Erfcx(x * -(std::numbers::sqrt2 / 2));
    const Tensor miss = Log(scaled * 0.5) - x * x * 0.5 - (i == kSteps ? log : given);
    x = x - miss * scaled * std::sqrt(std::numbers::pi / 2);
  }
  return x;
}

}  // namespace

Tensor Ndtri(const Tensor& in) {
  return InDoubles("ndtri", in, [](const Tensor& p) {
    // 1 - 2 p has few digits of a small p, and none of one that is below 0. The tails are alike.
    constexpr double kSmall = 0.02;
    const Tensor is_high = Gt(p, F64(0.5)), tail = Where(is_high, 1.0 - p, p);
    const Tensor is_small = LogicalAnd(Gt(tail, F64(0)), Lt(tail, F64(kSmall)));
    const Tensor far = LowQuantile(Where(is_small, tail, F64(kSmall)));
    const Tensor rest = Where(is_small, F64(0.5), Where(Lt(p, F64(0)), p - 1.0, p));
    return Where(is_small, Where(is_high, -far, far),
                 Erfinv(rest * 2.0 - 1.0) * std::numbers::sqrt2);
  });
}

}  // namespace lazuli::lazy
