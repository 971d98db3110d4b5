#include "lazy/ops/loss/cross_entropy.h"

#include "ir/hlo/monoid.h"
#include "lazy/ops/activation/softmax.h"
#include "lazy/ops/core/wide.h"
#include "lazy/ops/index/one_hot.h"
#include "lazy/ops/loss/reduction.h"
#include "lazy/ops/reduce/reduce.h"
#include "lazy/tensor/function_scope.h"

namespace lazuli::lazy {
namespace {

using hlo::ComparisonDirection;
using lowering::Opcode;

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
  const lowering::Op counts = b.Compare(ComparisonDirection::kNe, labels,
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
Tensor TargetOneHot(FunctionName op, const Tensor& target, const Tensor& counted, const Shape& x) {
  const FunctionScope function(op);
  const Tensor labels = Where(counted, target, Constant(0, target.dtype()));
  return Record(OneHotOp{1, x.dim(1), hlo::AccumulationType(x.dtype()), /*checked=*/true}, labels);
}

}  // namespace

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

namespace {

// What losses over classes take besides. Cross entropy alone smooths, and takes probabilities, floats
// of the shape of logits, as target.
struct ClassOptions {
  Tensor weight;               // of each class, [C]; undefined: 1
  int64_t ignore_index;        // a label that does not count
  double label_smoothing = 0;  // in [0, 1]: the share of an even distribution
  bool plain() const { return !weight.defined() && label_smoothing == 0; }
};

void Check(std::string_view op, const Shape& x, const ClassOptions& options) {
  const double smoothing = options.label_smoothing;
  if (!(smoothing >= 0 && smoothing <= 1)) {
    ThrowRecordError(op, InvalidArgument("label_smoothing must be in [0, 1], is ", smoothing));
  }
  if (!options.weight.defined() || x.rank() < 2) return;
  const Shape wanted(x.dtype(), {x.dim(1)});
  const Shape& weight = options.weight.shape();
  if (weight.dtype() != wanted.dtype() || !SameDims(weight, wanted)) {
    ThrowRecordError(
        op, InvalidArgument("weight must hold one number a class, ", wanted, ", is ", weight));
  }
}

// sum of weight * x over the classes.
Tensor OverClasses(const Tensor& x, const Tensor& weight) {
  return Sum(weight.defined() ? x * Reshape(weight, ChannelDims(x.shape())) : x, {1});
}

// (1 - s) * loss + s * the loss of an even distribution over the classes.
Tensor Smoothed(const Tensor& loss, const Tensor& log_probs, const ClassOptions& options) {
  const double s = options.label_smoothing;
  const auto classes = static_cast<double>(log_probs.dim(1));
  return loss * (1 - s) - OverClasses(log_probs, options.weight) * (s / classes);
}

// The labels of a target, and which of them count.
class ClassLabels {
 public:
  ClassLabels(const Tensor& target, int64_t ignore_index) : labels_(target) {
    if (!IsIntegral(target.dtype())) return;
    const Tensor wide = To(target, DType::kS64);
    counts_ = Ne(wide, Constant(static_cast<double>(ignore_index), DType::kS64));
    labels_ = Where(counts_, wide, Constant(0, DType::kS64));
  }

  const Tensor& get() const { return labels_; }  // 0 where one does not count
  // loss [N, ...], 0 where a label does not count.
  Tensor Counted(const Tensor& loss) const {
    return counts_.defined() ? Where(counts_, loss, Constant(0, loss.dtype())) : loss;
  }
  // Of each label: what a mean divides by the sum of. Undefined: all are 1.
  Tensor Weights(const Tensor& weight, const Shape& x) const {
    if (weight.defined())
      return Counted(OverClasses(Record(OneHotOp{1, x.dim(1), x.dtype()}, labels_), weight));
    return counts_.defined() ? To(counts_, x.dtype()) : Tensor();
  }

 private:
  Tensor labels_, counts_;
};

// The mean is by weight.
Tensor Averaged(const Tensor& loss, const Tensor& weights, Reduction reduction) {
  const bool by_weight = reduction == Reduction::kMean && weights.defined();
  return by_weight ? Sum(loss) / Sum(weights) : Reduced(loss, reduction);
}

Tensor OfProbabilities(const Tensor& logits, const Tensor& target, const ClassOptions& options,
                       Reduction reduction) {
  if (options.ignore_index >= 0) {
    ThrowRecordError("cross_entropy", InvalidArgument("ignore_index goes with class indices, not "
                                                      "with probabilities, ",
                                                      target.shape()));
  }
  const Tensor log_probs = LogSoftmax(logits, 1);
  Tensor loss = -OverClasses(target * log_probs, options.weight);
  if (options.label_smoothing > 0) loss = Smoothed(loss, log_probs, options);
  return Reduced(loss, reduction);
}

ClassOptions WithWideWeight(ClassOptions options) {
  if (options.weight.defined()) options.weight = Wide(options.weight);
  return options;
}
// Of one sample alone, [C] and its label, or its probabilities.
bool IsOneSample(const Tensor& x, const Tensor& target) {
  return x.rank() == 1 && (target.rank() == 0 || SameDims(x.shape(), target.shape()));
}
Tensor WithoutBatch(const Tensor& loss, Reduction reduction) {
  return reduction == Reduction::kNone ? Squeeze(loss, 0) : loss;
}

}  // namespace

Tensor CrossEntropy(const Tensor& logits, const Tensor& target, const Tensor& weight,
                    std::optional<int64_t> ignore_index, Reduction reduction,
                    double label_smoothing) {
  if (IsOneSample(logits, target)) {
    return WithoutBatch(CrossEntropy(Unsqueeze(logits, 0), Unsqueeze(target, 0), weight,
                                     ignore_index, reduction, label_smoothing),
                        reduction);
  }
  const int64_t ignored = ignore_index.value_or(kIgnoredLabel);
  const ClassOptions given{weight, ignored, label_smoothing};
  Check("cross_entropy", logits.shape(), given);
  const bool probabilities = IsFloat(target.dtype()) && target.dtype() == logits.dtype() &&
                             logits.rank() >= 2 && SameDims(target.shape(), logits.shape());
  if (!probabilities && given.plain()) return CrossEntropy(logits, target, reduction, ignored);
  return InWide(logits, [&](const Tensor& x) {
    const ClassOptions options = WithWideWeight(given);
    if (probabilities) return OfProbabilities(x, Wide(target), options, reduction);
    const ClassLabels labels(target, options.ignore_index);
    Tensor loss = CrossEntropy(x, labels.get(), Reduction::kNone, ignored);
    const Tensor weights = labels.Weights(options.weight, x.shape());
    if (options.weight.defined()) loss = loss * weights;
    if (options.label_smoothing > 0) loss = Smoothed(loss, LogSoftmax(x, 1), options);
    return Averaged(labels.Counted(loss), weights, reduction);
  });
}

Tensor NllLoss(const Tensor& log_probs, const Tensor& target, const Tensor& weight,
               std::optional<int64_t> ignore_index, Reduction reduction) {
  if (IsOneSample(log_probs, target)) {
    return WithoutBatch(
        NllLoss(Unsqueeze(log_probs, 0), Unsqueeze(target, 0), weight, ignore_index, reduction),
        reduction);
  }
  const int64_t ignored = ignore_index.value_or(kIgnoredLabel);
  const ClassOptions given{weight, ignored};
  Check("nll_loss", log_probs.shape(), given);
  if (given.plain()) return NllLoss(log_probs, target, reduction, ignored);
  return InWide(log_probs, [&](const Tensor& x) {
    const ClassOptions options = WithWideWeight(given);
    const ClassLabels labels(target, options.ignore_index);
    Tensor loss = NllLoss(x, labels.get(), Reduction::kNone, ignored);
    const Tensor weights = labels.Weights(options.weight, x.shape());
    if (options.weight.defined()) loss = loss * weights;
    return Averaged(labels.Counted(loss), weights, reduction);
  });
}

}  // namespace lazuli::lazy
