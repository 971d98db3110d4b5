#include "lazy/ops/loss.h"

#include <limits>

#include "ir/hlo/monoid.h"
#include "ir/support/wrong_type.h"
#include "lazy/ops/elementwise.h"
#include "lazy/ops/wide.h"
#include "lazy/tensor/function_scope.h"

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

// Wide.
lowering::Op LogSoftmaxAlong(lowering::Builder& b, lowering::Op x, int64_t dim) {
  const lowering::Op shifted = Shifted(b, Wide(x), dim);
  const lowering::Op sum = b.Reduce(Opcode::kAdd, b.Unary(Opcode::kExponential, shifted), {dim});
  return b.Minus(shifted, SpreadAlong(b, b.Unary(Opcode::kLog, sum), x.shape(), dim));
}

Tensor SoftmaxGradient(const Tensor& result, const Tensor& dy, int64_t dim) {
  const Tensor y = Wide(result), g = Wide(dy);
  return To(y * (g - Sum(g * y, {dim}, /*keepdim=*/true)), dy.dtype());
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

// Fails the run where an index is none of a class: "one_hot: index 9 is out of range [0, 9)". Those
// that do not count, if `counts` is given, may be anything.
void CheckClasses(lowering::LoweringContext& c, lowering::Op index, int64_t classes,
                  std::string_view op, std::string_view what, lowering::Op counts = {}) {
  lowering::Builder& b = c.builder;
  if (b.shapes_only()) return;
  lowering::Op bad =
      b.Binary(Opcode::kOr, b.Compare(ComparisonDirection::kLt, index, b.ZerosLike(index)),
               b.Compare(ComparisonDirection::kGe, index,
                         b.Full(index.shape(), static_cast<double>(classes))));
  if (counts.valid()) bad = b.Binary(Opcode::kAnd, bad, counts);
  c.CheckNone(bad, index,
              {std::string(op), Str(what, " "), Str(" is out of range [0, ", classes, ")")});
}

// Mean or sum of -log_probs at target, wide; log_probs has classes along dim 1. Labels that are
// `ignored` have no loss and do not count for the mean.
lowering::Op NegativeLogLikelihood(lowering::LoweringContext& c, lowering::Op log_probs,
                                   lowering::Op target, std::string_view op, Reduction reduction,
                                   int64_t ignored) {
  lowering::Builder& b = c.builder;
  log_probs = Wide(log_probs);
  target = WideIndex(target);
  const Shape x = log_probs.shape();  // NOLINT: a copy, for the original moves as more is built
  const int64_t classes = x.dim(1);
  const lowering::Op labels = b.Convert(target, DType::kS64);
  const lowering::Op counts = b.Compare(
      ComparisonDirection::kNe, labels,
      b.Full(labels.shape(), static_cast<double>(ignored)));
  CheckClasses(c, target, classes, op, "label", counts);
  lowering::Op is_chosen = OneHotAlong(b, target, x, 1);
  if (ignored >= 0 && ignored < classes)
    is_chosen = b.Binary(Opcode::kAnd, is_chosen, SpreadAlong(b, counts, x, 1));
  const lowering::Op chosen = b.Select(is_chosen, log_probs, b.ZerosLike(log_probs));
  const lowering::Op loss = b.Unary(Opcode::kNegate, b.Reduce(Opcode::kAdd, chosen, {1}));
  if (reduction == Reduction::kNone) return loss;
  Dims all;
  for (int64_t d = 0; d < loss.rank(); ++d) all.push_back(d);
  const lowering::Op sum = b.Reduce(Opcode::kAdd, loss, all);
  if (reduction == Reduction::kSum) return sum;
  const lowering::Op count = b.Reduce(Opcode::kAdd, b.Convert(counts, DType::kS64), all);
  return b.DividedBy(sum, b.Convert(count, x.dtype()));
}

// Which labels of a target are counted.
Tensor Counted(const Tensor& target, int64_t ignored) {
  return Ne(To(target, DType::kS64), Constant(static_cast<double>(ignored), DType::kS64));
}

// dy of a reduced loss, wide, stretched over x, divided as the reduction divided; 0 for labels that
// do not count.
Tensor LossScale(const Tensor& narrow, const Shape& x, const Tensor& counted, Reduction reduction) {
  const Shape& target = counted.shape();
  Tensor dy = Wide(narrow);
  if (reduction == Reduction::kMean) dy = dy / To(Sum(counted), dy.dtype());
  dy = Where(counted, BroadcastTo(dy, target.dims()), Constant(0, dy.dtype()));
  Dims dims(target.dims().begin(), target.dims().end());
  dims.insert(dims.begin() + 1, 1);
  return BroadcastTo(Reshape(dy, dims), x.dims());
}

// Of the gradient of `op`, which a bad label fails as it fails the loss.
Tensor TargetOneHot(FunctionName op, const Tensor& target, const Tensor& counted,
                    const Shape& x) {
  const FunctionScope function(op);
  const Tensor labels = Where(counted, target, Constant(0, target.dtype()));
  return Record(OneHotOp{1, x.dim(1), hlo::AccumulationType(x.dtype()), /*checked=*/true}, labels);
}

}  // namespace

lowering::Op SoftmaxOp::Lower(lowering::Builder& b, lowering::Op x) const {
  const lowering::Op e = b.Unary(Opcode::kExponential, Shifted(b, Wide(x), dim));
  const lowering::Op sum = b.Reduce(Opcode::kAdd, e, {dim});
  return b.Convert(b.DividedBy(e, SpreadAlong(b, sum, x.shape(), dim)), x.dtype());
}
Tensors SoftmaxOp::Vjp(const Saved& s, const Tensor& dy) const {
  return {SoftmaxGradient(s.y(), dy, dim)};
}

lowering::Op SafeSoftmaxOp::Lower(lowering::Builder& b, lowering::Op x) const {
  const lowering::Op wide = Wide(x);
  const lowering::Op largest = b.Reduce(Opcode::kMaximum, wide, {dim});
  const lowering::Op some =
      b.Compare(ComparisonDirection::kNe, largest,
                b.Full(largest.shape(), -std::numeric_limits<double>::infinity()));
  const lowering::Op shift = b.Select(some, largest, b.ZerosLike(largest));
  const lowering::Op e =
      b.Unary(Opcode::kExponential, b.Minus(wide, SpreadAlong(b, shift, x.shape(), dim)));
  const lowering::Op sum = b.Reduce(Opcode::kAdd, e, {dim});
  const lowering::Op divisor = b.Select(some, sum, b.Full(sum.shape(), 1));
  return b.Convert(b.DividedBy(e, SpreadAlong(b, divisor, x.shape(), dim)), x.dtype());
}
Tensors SafeSoftmaxOp::Vjp(const Saved& s, const Tensor& dy) const {
  return {SoftmaxGradient(s.y(), dy, dim)};
}

lowering::Op LogSoftmaxOp::Lower(lowering::Builder& b, lowering::Op x) const {
  return b.Convert(LogSoftmaxAlong(b, x, dim), x.dtype());
}
Tensors LogSoftmaxOp::Vjp(const Saved& s, const Tensor& dy) const {
  const Tensor g = Wide(dy);
  return {To(g - Exp(Wide(s.y())) * Sum(g, {dim}, /*keepdim=*/true), dy.dtype())};
}

lowering::Op CrossEntropyOp::Lower(lowering::LoweringContext& c, lowering::Op logits,
                                   lowering::Op target) const {
  if (absl::Status status = CheckTarget(logits.shape(), target.shape()); !status.ok())
    return c.builder.Error(std::move(status));
  const lowering::Op log_probs = LogSoftmaxAlong(c.builder, logits, 1);
  return c.builder.Convert(
      NegativeLogLikelihood(c, log_probs, target, kName, reduction, ignore_index), logits.dtype());
}
Tensors CrossEntropyOp::Vjp(const Saved& s, const Tensor& dy) const {
  const Shape& x = s.shape(0);
  const Tensor target = s.x(1), counted = Counted(target, ignore_index);
  const Tensor difference = Softmax(Wide(s.x(0)), 1) - TargetOneHot(kName, target, counted, x);
  return {To(difference * LossScale(dy, x, counted, reduction), x.dtype()), Tensor()};
}

lowering::Op NllLossOp::Lower(lowering::LoweringContext& c, lowering::Op log_probs,
                              lowering::Op target) const {
  if (absl::Status status = CheckTarget(log_probs.shape(), target.shape()); !status.ok())
    return c.builder.Error(std::move(status));
  return c.builder.Convert(
      NegativeLogLikelihood(c, log_probs, target, kName, reduction, ignore_index),
      log_probs.dtype());
}
Tensors NllLossOp::Vjp(const Saved& s, const Tensor& dy) const {
  const Shape& x = s.shape(0);
  const Tensor target = s.x(1), counted = Counted(target, ignore_index);
  const Tensor slope =
      -(TargetOneHot(kName, target, counted, x) * LossScale(dy, x, counted, reduction));
  return {To(slope, x.dtype()), Tensor()};
}

namespace {

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

lowering::Op HuberOp::Lower(lowering::Builder& b, lowering::Op x, lowering::Op number) const {
  if (number.shape().rank() != 0)
    return b.Error(InvalidArgument("delta must be a number, is ", number.shape()));
  const lowering::Op d = b.Unary(Opcode::kAbs, x), half = b.Full(x.shape(), 0.5);
  const lowering::Op delta = b.BroadcastTo(b.Convert(number, x.dtype()), x.shape().dims());
  const lowering::Op square = b.Times(b.Times(d, d), half);
  const lowering::Op beyond = b.Minus(d, b.Times(delta, half));
  const lowering::Op is_near = b.Compare(ComparisonDirection::kLe, d, delta);
  return smooth_l1 ? b.Select(is_near, b.DividedBy(square, delta), beyond)
                   : b.Select(is_near, square, b.Times(delta, beyond));
}
Tensors HuberOp::Vjp(const Saved& s, const Tensor& dy) const {
  const Tensor delta = s.x(1), slope = ClampBetween(s.x(0), -delta, delta);
  return {dy * (smooth_l1 ? slope / delta : slope), Tensor()};
}

lowering::Op OneHotOp::Lower(lowering::LoweringContext& c, lowering::Op index) const {
  lowering::Builder& b = c.builder;
  if (!IsIntegral(index.dtype()))
    return b.Error(InvalidArgument("takes integers, not ", index.shape()));
  Dims dims(index.shape().dims().begin(), index.shape().dims().end());
  dims.insert(dims.begin() + dim, classes);
  index = WideIndex(index);
  if (checked) CheckClasses(c, index, classes, kName, "index");
  return b.Convert(OneHotAlong(b, index, Shape(dtype, dims), dim), dtype);
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

Tensor Softmax(const Tensor& in, int64_t dim, std::optional<DType> dtype) {
  const Tensor x = dtype ? To(in, *dtype) : in;
  if (x.rank() == 0) return Reshape(Softmax(Reshape(x, {1}), dim), {});
  return Record(SoftmaxOp{NormalizeDim("softmax", dim, x.rank())}, x);
}
Tensor SafeSoftmax(const Tensor& x, int64_t dim) {
  return Record(SafeSoftmaxOp{NormalizeDim("softmax", dim, x.rank())}, x);
}
Tensor LogSoftmax(const Tensor& in, int64_t dim, std::optional<DType> dtype) {
  const Tensor x = dtype ? To(in, *dtype) : in;
  if (x.rank() == 0) return Reshape(LogSoftmax(Reshape(x, {1}), dim), {});
  return Record(LogSoftmaxOp{NormalizeDim("log_softmax", dim, x.rank())}, x);
}
Tensor Softmin(const Tensor& x, int64_t dim, std::optional<DType> dtype) {
  return Softmax(-x, dim, dtype);
}
Tensor CrossEntropy(const Tensor& logits, const Tensor& target, Reduction reduction,
                    int64_t ignore_index) {
  return Record(CrossEntropyOp{reduction, ignore_index}, logits, target);
}
Tensor CrossEntropy(const Tensor& logits, const Tensor& target, Reduction reduction) {
  return CrossEntropy(logits, target, reduction, kIgnoredLabel);
}
Tensor NllLoss(const Tensor& log_probs, const Tensor& target, Reduction reduction) {
  return NllLoss(log_probs, target, reduction, kIgnoredLabel);
}
Tensor NllLoss(const Tensor& log_probs, const Tensor& target, Reduction reduction,
               int64_t ignore_index) {
  return Record(NllLossOp{reduction, ignore_index}, log_probs, target);
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

namespace {
// A loss of pairs takes floats that broadcast, and other real numbers beside floats.
void CheckLoss(std::string_view op, const Tensor& x, const Tensor& y) {
  if (!BroadcastDims(x.shape(), y.shape()).ok()) {
    ThrowRecordError(
        op, InvalidArgument("shapes ", x.shape(), " and ", y.shape(), " do not broadcast"));
  }
  const bool is_complex = IsComplex(x.dtype()) || IsComplex(y.dtype());
  if (!is_complex && (IsFloat(x.dtype()) || IsFloat(y.dtype()))) return;
  ThrowRecordError(
      op, WrongType("takes floats, not ", x.shape(), " and ", y.shape(), "; convert with to()"));
}

// A number beside x in the type that sums of x are computed in.
Value BesideWide(const Number& number, const Tensor& x) {
  return number.As(number.TypeBeside(hlo::AccumulationType(x.dtype())));
}

void CheckAboveZero(std::string_view op, std::string_view what, const Number& number,
                    std::string_view hint) {
  if (number.as_double() > 0) return;
  ThrowRecordError(op, InvalidArgument(what, " must be above 0, is ", number.as_double(), hint));
}

// loss(x, y) of each element and what is made of them, wide; the result as arithmetic of x and y
// has it.
template <class F>
Tensor PairLoss(const Tensor& x, const Tensor& y, Reduction reduction, F&& loss) {
  const auto floats = [](const Tensor& v, const Tensor& beside) {
    return Wide(IsFloat(v.dtype()) ? v : To(v, beside.dtype()));
  };
  const Tensor wide = Reduced(loss(floats(x, y), floats(y, x)), reduction);
  return To(wide, Promote(x.dtype(), y.dtype()).value_or(wide.dtype()));
}
}  // namespace

Tensor MseLoss(const Tensor& x, const Tensor& y, Reduction reduction) {
  CheckLoss("mse_loss", x, y);
  return PairLoss(x, y, reduction, [](const Tensor& a, const Tensor& b) {
    const Tensor difference = a - b;
    return difference * difference;
  });
}
Tensor L1Loss(const Tensor& x, const Tensor& y, Reduction reduction) {
  if (IsComplex(x.dtype()) || IsComplex(y.dtype())) return Reduced(Abs(x - y), reduction);
  CheckLoss("l1_loss", x, y);
  return PairLoss(x, y, reduction, [](const Tensor& a, const Tensor& b) { return Abs(a - b); });
}
Tensor SmoothL1Loss(const Tensor& x, const Tensor& y, const Number& beta, Reduction reduction) {
  CheckLoss("smooth_l1_loss", x, y);
  if (beta.as_double() == 0) return L1Loss(x, y, reduction);  // the limit
  CheckAboveZero("smooth_l1_loss", "beta", beta, "");
  return PairLoss(x, y, reduction, [&](const Tensor& a, const Tensor& b) {
    return Record(HuberOp{true}, a - b, BesideWide(beta, a));
  });
}
Tensor HuberLoss(const Tensor& x, const Tensor& y, Reduction reduction, const Number& delta) {
  CheckLoss("huber_loss", x, y);
  CheckAboveZero("huber_loss", "delta", delta, "");
  return PairLoss(x, y, reduction, [&](const Tensor& a, const Tensor& b) {
    return Record(HuberOp{false}, a - b, BesideWide(delta, a));
  });
}
Tensor KlDiv(const Tensor& log_probs, const Tensor& target, bool log_target, Reduction reduction) {
  CheckLoss("kl_div", log_probs, target);
  return PairLoss(log_probs, target, reduction, [&](const Tensor& q, const Tensor& p) {
    if (log_target) return Exp(p) * (p - q);
    // The limit of p log(p) at 0 is 0.
    const Tensor some = Ne(p, Constant(0, p.dtype()));
    return p * Log(Where(some, p, Constant(1, p.dtype()))) - p * q;
  });
}

Tensor OneHot(const Tensor& index, int64_t classes, DType dtype) {
  if (classes < 1)
    ThrowRecordError("one_hot", InvalidArgument("classes must be at least 1, is ", classes));
  return Record(OneHotOp{index.rank(), classes, dtype, /*checked=*/true}, index);
}

}  // namespace lazuli::lazy
