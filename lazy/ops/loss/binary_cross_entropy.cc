#include "lazy/ops/loss/binary_cross_entropy.h"

#include "lazy/ops/loss/reduction.h"

namespace lazuli::lazy {
namespace {

using hlo::ComparisonDirection;
using lowering::Opcode;

// Both as floats of one dtype, with equal dims.
absl::Status CheckPair(const Shape& x, const Shape& y) {
  if (!IsFloat(x.dtype()) || !IsFloat(y.dtype()))
    return InvalidArgument("takes floats, not ", x, " and ", y, "; convert with to()");
  if (!SameDims(x, y)) return InvalidArgument("shapes differ: ", x, " and ", y);
  if (x.dtype() != y.dtype())
    return InvalidArgument("dtypes differ: ", x, " and ", y, "; convert one with to()");
  return absl::OkStatus();
}

// Fails the run where an element lies outside of [0, 1], or is NaN.
void CheckUnit(lowering::LoweringContext& c, std::string_view op, lowering::Op x,
               std::string_view what) {
  lowering::Builder& b = c.builder;
  const int64_t n = x.shape().num_elements();
  if (b.shapes_only() || n == 0) return;
  const lowering::Op flat = b.Reshape(x, {n});
  const lowering::Op inside =
      b.Binary(Opcode::kAnd, b.Compare(ComparisonDirection::kGe, flat, b.ZerosLike(flat)),
               b.Compare(ComparisonDirection::kLe, flat, b.Full(flat.shape(), 1)));
  c.CheckNone(b.Unary(Opcode::kNot, inside), b.Iota(Shape(DType::kS64, {n}), 0),
              {std::string(op),
               Str("all elements of ", what, " should be between 0 and 1, but that at position "),
               " is not"});
}

}  // namespace

// max(x, 0) - x y + log(1 + exp(-|x|)), whose first two terms are one: at infinity they would be a
// difference of infinities.
lowering::Op BceWithLogitsOp::Lower(lowering::Builder& b, lowering::Op x, lowering::Op y) const {
  if (absl::Status status = CheckPair(x.shape(), y.shape()); !status.ok())
    return b.Error(std::move(status));
  const lowering::Op small =
      b.Unary(Opcode::kExponential, b.Unary(Opcode::kNegate, b.Unary(Opcode::kAbs, x)));
  const lowering::Op zeros = b.ZerosLike(x),
                     is_positive = b.Compare(ComparisonDirection::kGt, x, zeros);
  const lowering::Op factor = b.Minus(b.Select(is_positive, b.Full(x.shape(), 1), zeros), y);
  return b.Plus(b.Times(x, factor), b.Unary(Opcode::kLogPlusOne, small));
}
Tensors BceWithLogitsOp::Vjp(const Saved& s, const Tensor& dy) const {
  Tensors grads(2);
  if (s.needs(0)) grads[0] = dy * (Sigmoid(s.x(0)) - s.x(1));
  if (s.needs(1)) grads[1] = -(dy * s.x(0));
  return grads;
}

lowering::Op BceOp::Lower(lowering::LoweringContext& c, lowering::Op x, lowering::Op y) const {
  lowering::Builder& b = c.builder;
  if (absl::Status status = CheckPair(x.shape(), y.shape()); !status.ok())
    return b.Error(std::move(status));
  CheckUnit(c, kName, x, "input");
  CheckUnit(c, kName, y, "target");
  const auto number = [&](double v) { return b.Full(x.shape(), v); };
  const lowering::Op yes = b.Maximum(b.Unary(Opcode::kLog, x), number(-100));
  const lowering::Op no =
      b.Maximum(b.Unary(Opcode::kLogPlusOne, b.Unary(Opcode::kNegate, x)), number(-100));
  return b.Minus(b.Times(b.Minus(y, number(1)), no), b.Times(y, yes));
}
Tensors BceOp::Vjp(const Saved& s, const Tensor& dy) const {
  const Tensor x = s.x(0), y = s.x(1);
  Tensors grads(2);
  if (s.needs(0)) {
    // As torch: a denominator of 0 is a tiny one.
    const Tensor spread = Maximum((1.0 - x) * x, Constant(1e-12, x.dtype()));
    grads[0] = dy * (x - y) / spread;
  }
  if (s.needs(1)) {
    const Value least = Constant(-100, x.dtype());
    grads[1] = dy * (Maximum(Log1p(-x), least) - Maximum(Log(x), least));
  }
  return grads;
}
Tensor BinaryCrossEntropyWithLogits(const Tensor& logits, const Tensor& target,
                                    const Tensor& weight, const Tensor& pos_weight,
                                    Reduction reduction) {
  Tensor loss;
  if (pos_weight.defined()) {
    if (absl::Status status = CheckPair(logits.shape(), target.shape()); !status.ok())
      ThrowRecordError("binary_cross_entropy_with_logits", status);
    const Tensor share = (pos_weight - 1.0) * target + 1.0;
    loss = (1.0 - target) * logits - share * LogSigmoid(logits);
  } else {
    loss = Record(BceWithLogitsOp{}, logits, target);
  }
  return Reduced(weight.defined() ? loss * weight : loss, reduction);
}
Tensor BinaryCrossEntropy(const Tensor& x, const Tensor& target, const Tensor& weight,
                          Reduction reduction) {
  const Tensor loss = Record(BceOp{}, x, target);
  return Reduced(weight.defined() ? loss * weight : loss, reduction);
}

}  // namespace lazuli::lazy
