#include "lazy/ops/activation.h"

#include "lazy/ops/elementwise.h"

namespace lazuli::lazy {
namespace {

using lowering::Opcode;

constexpr double kSqrtHalf = 0.7071067811865476;       // 1 / sqrt(2)
constexpr double kNormalPeak = 0.3989422804014327;     // 1 / sqrt(2 pi)
constexpr double kSqrtTwoOverPi = 0.7978845608028654;  // of the approximation by tanh
constexpr double kCubicShare = 0.044715;               // likewise
constexpr double kSeluScale = 1.0507009873554805, kSeluAlpha = 1.6732632423543772;

Value Zero(const Tensor& x) { return Constant(0, x.dtype()); }

// x where it is not positive, else 0: what exponentials may be taken of without overflow. (A
// minimum would give half the gradient at 0.)
Tensor Negatives(const Tensor& x) { return Where(Gt(x, Zero(x)), Zero(x), x); }

}  // namespace

lowering::Op GeluOp::Lower(lowering::Builder& b, lowering::Op x) const {
  x = Prepare(Accepts::kFloat, x);
  const auto number = [&](double v) { return b.Full(x.shape(), v); };
  const lowering::Op half = b.Times(x, number(0.5));
  lowering::Op share;
  if (tanh) {
    const lowering::Op cube = b.Times(b.Times(b.Times(x, x), x), number(kCubicShare));
    share = b.Unary(Opcode::kTanh, b.Times(b.Plus(x, cube), number(kSqrtTwoOverPi)));
  } else {
    share = b.Unary(Opcode::kErf, b.Times(x, number(kSqrtHalf)));
  }
  return b.Times(half, b.Plus(share, number(1)));
}

Tensors GeluOp::Vjp(const Saved& s, const Tensor& dy) const {
  const Tensor x = s.x();
  if (!tanh) {
    const Tensor below = (Erf(x * kSqrtHalf) + 1.0) * 0.5;
    const Tensor density = Exp(x * x * -0.5) * kNormalPeak;
    return {dy * (below + x * density)};
  }
  const Tensor square = x * x;
  const Tensor t = Tanh((x + square * x * kCubicShare) * kSqrtTwoOverPi);
  const Tensor slope = (square * (3 * kCubicShare) + 1.0) * kSqrtTwoOverPi;
  return {dy * ((t + 1.0) * 0.5 + x * 0.5 * (1.0 - t * t) * slope)};
}

Tensor Floating(const Tensor& x) {
  return IsFloat(x.dtype()) || IsComplex(x.dtype()) ? x : To(x, DType::kF32);
}

Tensor Gelu(const Tensor& x, bool tanh) { return Record(GeluOp{tanh}, x); }

Tensor Silu(const Tensor& in) {
  const Tensor x = Floating(in);
  return x * Sigmoid(x);
}

Tensor LeakyRelu(const Tensor& in, const Operand& slope) {
  const Tensor x = Floating(in);
  return Where(Gt(x, Zero(x)), x, Mul(x, slope));
}

Tensor Elu(const Tensor& in, const Operand& alpha) {
  const Tensor x = Floating(in);
  return Where(Gt(x, Zero(x)), x, Mul(Expm1(Negatives(x)), alpha));
}

Tensor Celu(const Tensor& in, const Operand& alpha) {
  const Tensor x = Floating(in);
  return Where(Gt(x, Zero(x)), x, Mul(Expm1(Div(Negatives(x), alpha)), alpha));
}

Tensor Selu(const Tensor& in) {
  const Tensor x = Floating(in);
  return Where(Gt(x, Zero(x)), x, Expm1(Negatives(x)) * kSeluAlpha) * kSeluScale;
}

Tensor Softplus(const Tensor& in, const Operand& beta, const Operand& threshold) {
  const Tensor x = Floating(in);
  const Tensor scaled = Mul(x, beta);
  const Tensor linear = Gt(scaled, threshold);  // there, log(1 + exp(x)) is x in every digit
  const Tensor small = Where(linear, Zero(x), scaled);
  return Where(linear, x, Div(Log1p(Exp(small)), beta));
}

Tensor LogSigmoid(const Tensor& in) {
  const Tensor x = Floating(in);
  return Minimum(x, Zero(x)) - Log1p(Exp(-Abs(x)));
}

Tensor Hardtanh(const Tensor& x, const Operand& low, const Operand& high) {
  // Unlike clamp's, the gradient at the bounds is 0.
  const Tensor inside = LogicalAnd(Gt(x, low), Lt(x, high));
  return Where(inside, x, Clamp(Detach(x), low, high));
}

Tensor Relu6(const Tensor& x) {
  return Hardtanh(x, Constant(0, x.dtype()), Constant(6, x.dtype()));
}

Tensor Hardsigmoid(const Tensor& in) { return Relu6(Floating(in) + 3.0) / 6.0; }

Tensor Hardswish(const Tensor& in) {
  const Tensor x = Floating(in);
  return x * Hardsigmoid(x);
}

Tensor Mish(const Tensor& in) {
  const Tensor x = Floating(in);
  return x * Tanh(Softplus(x, Constant(1, x.dtype()), Constant(20, x.dtype())));
}

Tensor Softsign(const Tensor& in) {
  const Tensor x = Floating(in);
  return x / (Abs(x) + 1.0);
}

Tensor Prelu(const Tensor& x, const Tensor& weight) {
  Tensor slope = weight;
  if (weight.shape().num_elements() != 1) {
    if (weight.rank() != 1 || x.rank() < 2 || weight.dim(0) != x.dim(1)) {
      ThrowRecordError("prelu", InvalidArgument("weight ", weight.shape(),
                                                " is neither one number nor one for each channel ",
                                                "(dim 1) of ", x.shape()));
    }
    Dims dims(static_cast<std::size_t>(x.rank()), 1);
    dims[1] = x.dim(1);
    slope = Reshape(weight, dims);
  } else {
    slope = Reshape(weight, {});
  }
  return Where(Gt(x, Zero(x)), x, x * slope);
}

Tensor Glu(const Tensor& x, int64_t dim) {
  const int64_t d = NormalizeDim("glu", dim, x.rank());
  const int64_t half = x.dim(d) / 2;
  if (x.dim(d) % 2 != 0) {
    ThrowRecordError("glu",
                     InvalidArgument("dim ", d, " of ", x.shape(), " is odd and cannot be halved"));
  }
  return Narrow(x, d, 0, half) * Sigmoid(Narrow(x, d, half, half));
}

}  // namespace lazuli::lazy
