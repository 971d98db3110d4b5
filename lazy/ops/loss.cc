#include "lazy/ops/loss.h"

namespace lazuli::lazy {
namespace {

using hlo::ComparisonDirection;
using lowering::Opcode;

// A value reduced along dim, stretched back over x.
lowering::Op SpreadAlong(lowering::Builder& b, lowering::Op y, const Shape& x, int64_t dim) {
  Dims dimensions;
  for (int64_t d = 0; d < x.rank(); ++d) {
    if (d != dim) dimensions.push_back(d);
  }
  return b.Broadcast(y, x.dims(), dimensions);
}

lowering::Op Shifted(lowering::Builder& b, lowering::Op x, int64_t dim) {
  return b.Minus(x, SpreadAlong(b, b.Reduce(Opcode::kMaximum, x, {dim}), x.shape(), dim));
}

lowering::Op LogSoftmaxAlong(lowering::Builder& b, lowering::Op x, int64_t dim) {
  const lowering::Op shifted = Shifted(b, x, dim);
  const lowering::Op sum = b.Reduce(Opcode::kAdd, b.Unary(Opcode::kExponential, shifted), {dim});
  return b.Minus(shifted, SpreadAlong(b, b.Unary(Opcode::kLog, sum), x.shape(), dim));
}

lowering::Op OneHotAlong(lowering::Builder& b, lowering::Op index, const Shape& shape,
                         int64_t dim) {
  const lowering::Op position = b.Iota(Shape(index.dtype(), shape.dims()), dim);
  return b.Compare(ComparisonDirection::kEq, position, SpreadAlong(b, index, shape, dim));
}

absl::Status CheckTarget(const Shape& x, const Shape& target) {
  if (!IsIntegral(target.dtype()))
    return InvalidArgument("target must hold class indices (integers), is ", target);
  if (!IsFloat(x.dtype())) return InvalidArgument("takes floats, not ", x);
  bool fits = x.rank() >= 2 && target.rank() == x.rank() - 1;
  for (int64_t d = 0; fits && d < target.rank(); ++d)
    fits = target.dim(d) == x.dim(d == 0 ? 0 : d + 1);
  if (!fits)
    return InvalidArgument("takes [N, C, ...] and target [N, ...], not ", x, " and ", target);
  return absl::OkStatus();
}

// Mean or sum of -log_probs at target; log_probs has classes along dim 1.
lowering::Op NegativeLogLikelihood(lowering::Context& c, lowering::Op log_probs,
                                   lowering::Op target, std::string_view op, Reduction reduction) {
  lowering::Builder& b = c.builder;
  target = WideIndex(target);
  const Shape x = log_probs.shape();
  const int64_t classes = x.dim(1);
  const lowering::Op bad =
      b.Binary(Opcode::kOr, b.Compare(ComparisonDirection::kLt, target, b.ZerosLike(target)),
               b.Compare(ComparisonDirection::kGe, target,
                         b.Full(target.shape(), static_cast<double>(classes))));
  c.CheckNone(bad, target, Str(op, ": label "), Str(" is out of range [0, ", classes, ")"));
  const lowering::Op chosen =
      b.Select(OneHotAlong(b, target, x, 1), log_probs, b.ZerosLike(log_probs));
  const lowering::Op loss = b.Unary(Opcode::kNegate, b.Reduce(Opcode::kAdd, chosen, {1}));
  if (reduction == Reduction::kNone) return loss;
  Dims all;
  for (int64_t d = 0; d < loss.rank(); ++d) all.push_back(d);
  const lowering::Op sum = b.Reduce(Opcode::kAdd, loss, all);
  if (reduction == Reduction::kSum) return sum;
  return b.DividedBy(sum, b.Scalar(x.dtype(), static_cast<double>(target.shape().num_elements())));
}

// dy of a reduced loss, stretched over x, divided as the reduction divided.
Tensor LossScale(const Tensor& dy, const Shape& x, const Shape& target, Reduction reduction) {
  switch (reduction) {
    case Reduction::kNone: {
      Dims dims(target.dims().begin(), target.dims().end());
      dims.insert(dims.begin() + 1, 1);
      return BroadcastTo(Reshape(dy, dims), x.dims());
    }
    case Reduction::kSum:
      return dy;
    case Reduction::kMean:
      return dy / static_cast<double>(target.num_elements());
  }
  return dy;
}

Tensor TargetOneHot(const Tensor& target, const Shape& x) {
  return Record(OneHotOp{1, x.dim(1), x.dtype()}, target);
}

Tensor Reduced(const Tensor& loss, Reduction reduction) {
  switch (reduction) {
    case Reduction::kNone:
      return loss;
    case Reduction::kSum:
      return Sum(loss);
    case Reduction::kMean:
      return Mean(loss);
  }
  return loss;
}

}  // namespace

lowering::Op SoftmaxOp::Lower(lowering::Builder& b, lowering::Op x) const {
  const lowering::Op e = b.Unary(Opcode::kExponential, Shifted(b, x, dim));
  return b.DividedBy(e, SpreadAlong(b, b.Reduce(Opcode::kAdd, e, {dim}), x.shape(), dim));
}
Tensors SoftmaxOp::Vjp(const Saved& s, const Tensor& dy) const {
  const Tensor y = s.y();
  return {y * (dy - Sum(dy * y, {dim}, /*keepdim=*/true))};
}

lowering::Op LogSoftmaxOp::Lower(lowering::Builder& b, lowering::Op x) const {
  return LogSoftmaxAlong(b, x, dim);
}
Tensors LogSoftmaxOp::Vjp(const Saved& s, const Tensor& dy) const {
  return {dy - Exp(s.y()) * Sum(dy, {dim}, /*keepdim=*/true)};
}

lowering::Op CrossEntropyOp::Lower(lowering::Context& c, lowering::Op logits,
                                   lowering::Op target) const {
  if (absl::Status status = CheckTarget(logits.shape(), target.shape()); !status.ok())
    return c.builder.Error(std::move(status));
  return NegativeLogLikelihood(c, LogSoftmaxAlong(c.builder, logits, 1), target, kName, reduction);
}
Tensors CrossEntropyOp::Vjp(const Saved& s, const Tensor& dy) const {
  const Shape& x = s.shape(0);
  const Tensor difference = Softmax(s.x(0), 1) - TargetOneHot(s.x(1), x);
  return {difference * LossScale(dy, x, s.shape(1), reduction), Tensor()};
}

lowering::Op NllLossOp::Lower(lowering::Context& c, lowering::Op log_probs,
                              lowering::Op target) const {
  if (absl::Status status = CheckTarget(log_probs.shape(), target.shape()); !status.ok())
    return c.builder.Error(std::move(status));
  return NegativeLogLikelihood(c, log_probs, target, kName, reduction);
}
Tensors NllLossOp::Vjp(const Saved& s, const Tensor& dy) const {
  const Shape& x = s.shape(0);
  return {-(TargetOneHot(s.x(1), x) * LossScale(dy, x, s.shape(1), reduction)), Tensor()};
}

lowering::Op OneHotOp::Lower(lowering::Builder& b, lowering::Op index) const {
  if (!IsIntegral(index.dtype()))
    return b.Error(InvalidArgument("takes integers, not ", index.shape()));
  Dims dims(index.shape().dims().begin(), index.shape().dims().end());
  dims.insert(dims.begin() + dim, classes);
  return b.Convert(OneHotAlong(b, WideIndex(index), Shape(dtype, dims), dim), dtype);
}

Tensor Softmax(const Tensor& x, int64_t dim) {
  return Record(SoftmaxOp{NormalizeDim("softmax", dim, x.rank())}, x);
}
Tensor LogSoftmax(const Tensor& x, int64_t dim) {
  return Record(LogSoftmaxOp{NormalizeDim("log_softmax", dim, x.rank())}, x);
}
Tensor CrossEntropy(const Tensor& logits, const Tensor& target, Reduction reduction) {
  return Record(CrossEntropyOp{reduction}, logits, target);
}
Tensor NllLoss(const Tensor& log_probs, const Tensor& target, Reduction reduction) {
  return Record(NllLossOp{reduction}, log_probs, target);
}
Tensor MseLoss(const Tensor& x, const Tensor& y, Reduction reduction) {
  if (!IsFloat(x.dtype()) || !IsFloat(y.dtype())) {
    ThrowRecordError("mse_loss", InvalidArgument("takes floats, not ", x.shape(), " and ",
                                                 y.shape(), "; convert with to()"));
  }
  const Tensor difference = x - y;
  return Reduced(difference * difference, reduction);
}
Tensor OneHot(const Tensor& index, int64_t classes, DType dtype) {
  if (classes < 1)
    ThrowRecordError("one_hot", InvalidArgument("classes must be at least 1, is ", classes));
  return Record(OneHotOp{index.rank(), classes, dtype}, index);
}

}  // namespace lazuli::lazy
