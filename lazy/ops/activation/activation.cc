#include "lazy/ops/activation/activation.h"

#include <string_view>

#include "ir/support/wrong_type.h"
#include "lazy/ops/elementwise/elementwise.h"

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

// Unlike clamp's, the gradient at the bounds is 0, and that of NaN is not.
Tensor Limited(std::string_view op, const Tensor& x, const Value& low, const Value& high) {
  if (x.dtype() == DType::kPred) ThrowRecordError(op, WrongType("takes numbers, not ", x.shape()));
  const Tensor outside = LogicalOr(Le(x, low), Ge(x, high));
  return Where(outside, ClampBetween(Detach(x), low, high), x);
}

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
  if (!tanh) {
    const Tensor x = s.x();
    const Tensor below = (Erf(x * kSqrtHalf) + 1.0) * 0.5;
    const Tensor density = Exp(x * x * -0.5) * kNormalPeak;
    return {dy * (below + x * density)};
  }
  // From 10 on tanh is 1 in every digit: no square overflows.
  const Tensor x = ClampBetween(s.x(), Constant(-10, dy.dtype()), Constant(10, dy.dtype()));
  const Tensor square = x * x;
  const Tensor t = Tanh((x + square * x * kCubicShare) * kSqrtTwoOverPi);
  const Tensor slope = (square * (3 * kCubicShare) + 1.0) * kSqrtTwoOverPi;
  return {dy * ((t + 1.0) * 0.5 + x * 0.5 * (1.0 - t * t) * slope)};
}

lowering::Op EluOp::Lower(lowering::Builder& b, lowering::Op x, lowering::Op alpha) const {
  if (alpha.shape().rank() != 0)
    return b.Error(InvalidArgument("alpha must be a number, is ", alpha.shape()));
  x = Prepare(Accepts::kFloat, x);
  const lowering::Op factor = b.BroadcastTo(b.Convert(alpha, x.dtype()), x.shape().dims());
  const lowering::Op exponent = continuous ? b.DividedBy(x, factor) : x;
  const lowering::Op below = b.Times(b.Unary(Opcode::kExponentialMinusOne, exponent), factor);
  return b.Select(b.Compare(hlo::ComparisonDirection::kGt, x, b.ZerosLike(x)), x, below);
}

Tensors EluOp::Vjp(const Saved& s, const Tensor& dy) const {
  const Tensor x = s.x(0), alpha = s.x(1), negative = Negatives(x);
  const Tensor slope = continuous ? Exp(negative / alpha) : Exp(negative) * alpha;
  return {Where(Le(x, Zero(x)), dy * slope, dy), Tensor()};
}

lowering::Op LogSigmoidOp::Lower(lowering::Builder& b, lowering::Op x) const {
  x = Prepare(Accepts::kFloat, x);
  const lowering::Op small =
      b.Unary(Opcode::kExponential, b.Unary(Opcode::kNegate, b.Unary(Opcode::kAbs, x)));
  return b.Minus(b.Binary(Opcode::kMinimum, x, b.ZerosLike(x)),
                 b.Unary(Opcode::kLogPlusOne, small));
}

Tensors LogSigmoidOp::Vjp(const Saved& s, const Tensor& dy) const { return {dy * Sigmoid(-s.x())}; }

Tensor Gelu(const Tensor& x, std::string_view approximate) {
  if (approximate != "none" && approximate != "tanh") {
    ThrowRecordError("gelu", InvalidArgument("approximate must be none or tanh, is ", approximate));
  }
  return Record(GeluOp{approximate == "tanh"}, x);
}

Tensor Silu(const Tensor& in) {
  const Tensor x = Floating(in);
  return x * Sigmoid(x);
}

Tensor LeakyRelu(const Tensor& in, const Number& slope) {
  const Tensor x = Floating(in);
  return Where(Gt(x, Zero(x)), x, x * slope);
}

Tensor Rrelu(const Tensor& in, double lower, double upper, bool training) {
  if (lower > upper) {
    ThrowRecordError("rrelu",
                     InvalidArgument("lower must not be above upper, are ", lower, " and ", upper));
  }
  const Tensor x = Floating(in);
  const Tensor below =
      training ? x * (RandLike(x) * (upper - lower) + lower) : x * ((lower + upper) / 2);
  return Where(Gt(x, Zero(x)), x, below);
}

Tensor Elu(const Tensor& in, const Number& alpha) {
  const Tensor x = Floating(in);
  return Record(EluOp{false}, x, alpha.Beside(x));
}

Tensor Celu(const Tensor& in, const Number& alpha) {
  const Tensor x = Floating(in);
  return Record(EluOp{true}, x, alpha.Beside(x));
}

Tensor Selu(const Tensor& x) { return Elu(x, kSeluAlpha) * kSeluScale; }

Tensor Softplus(const Tensor& in, const Number& beta, const Number& threshold) {
  const Tensor x = Floating(in);
  const Value factor = beta.Beside(x);
  const Tensor scaled = Mul(x, factor);
  // log(1 + exp(x)) without its overflow, 0 and not -0 far below; beyond the threshold it is x in every digit.
  const Tensor smooth = Div(Sub(Zero(x), LogSigmoid(-scaled)), factor);
  return Where(Gt(scaled, threshold.Beside(x)), x, smooth);
}

Tensor LogSigmoid(const Tensor& x) { return Record(LogSigmoidOp{}, Floating(x)); }
Tensor Logsigmoid(const Tensor& x) { return LogSigmoid(x); }

Tensor Hardtanh(const Tensor& x, const Number& low, const Number& high) {
  if (low.as_double() > high.as_double()) {
    ThrowRecordError("hardtanh",
                     InvalidArgument("the lower bound ", low.Text(), " is above ", high.Text()));
  }
  const bool is_float = IsFloat(x.dtype());
  return Limited("hardtanh", x, is_float ? low.Beside(x) : low.As(x.dtype()),
                 is_float ? high.Beside(x) : high.As(x.dtype()));
}

Tensor Relu6(const Tensor& x) {
  return Limited("relu6", x, Constant(0, x.dtype()), Constant(6, x.dtype()));
}

// relu6(x + 3) / 6, but the gradient of NaN is 0.
Tensor Hardsigmoid(const Tensor& in) {
  const Tensor x = Floating(in) + 3.0;
  const Value low = Constant(0, x.dtype()), high = Constant(6, x.dtype());
  const Tensor inside = LogicalAnd(Gt(x, low), Lt(x, high));
  return Where(inside, x, ClampBetween(Detach(x), low, high)) / 6.0;
}

Tensor Hardswish(const Tensor& in) {
  const Tensor x = Floating(in);
  return x * Hardsigmoid(x);
}

Tensor Mish(const Tensor& in) {
  const Tensor x = Floating(in);
  return x * Tanh(Softplus(x, 1.0, 20.0));
}

Tensor Softsign(const Tensor& in) {
  const Tensor x = Floating(in);
  return x / (Abs(x) + 1.0);
}

Tensor Threshold(const Tensor& x, const Number& threshold, const Number& value) {
  return Where(Le(x, threshold.As(x.dtype())), value.As(x.dtype()), x);
}

Tensor Hardshrink(const Tensor& in, const Number& lambd) {
  const Tensor x = Floating(in);
  return Where(Le(Abs(Detach(x)), lambd.Beside(x)), Zero(x), x);
}

Tensor Softshrink(const Tensor& in, const Number& lambd) {
  if (lambd.as_double() < 0) {
    ThrowRecordError("softshrink", InvalidArgument("lambd must be at least 0, is ", lambd.Text()));
  }
  const Tensor x = Floating(in);
  const Value bound = lambd.Beside(x);
  const Tensor middle = Where(Ne(x, x), x, Zero(x));
  return To(Where(Gt(x, bound), Sub(x, bound), Where(Gt(-x, bound), Add(x, bound), middle)),
            x.dtype());
}

Tensor Tanhshrink(const Tensor& in) {
  const Tensor x = Floating(in);
  return x - Tanh(x);
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
  return Where(Gt(x, Zero(x)), x, Negatives(x) * slope);
}

Tensor Glu(const Tensor& in, int64_t dim) {
  const Tensor x = Floating(in);
  const int64_t d = NormalizeDim("glu", dim, x.rank());
  const int64_t half = x.dim(d) / 2;
  if (x.dim(d) % 2 != 0) {
    ThrowRecordError("glu",
                     InvalidArgument("dim ", d, " of ", x.shape(), " is odd and cannot be halved"));
  }
  return Narrow(x, d, 0, half) * Sigmoid(Narrow(x, d, half, half));
}

}  // namespace lazuli::lazy
