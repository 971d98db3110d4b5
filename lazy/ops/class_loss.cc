// Losses over classes with weights, ignored labels, smoothed labels, or probabilities as target:
// compositions of the two ops of loss.h, which do the common case alone.
#include "lazy/ops/loss.h"
#include "lazy/ops/wide.h"

namespace lazuli::lazy {
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

}  // namespace

namespace {
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
