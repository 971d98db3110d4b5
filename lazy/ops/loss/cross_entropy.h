// Cross entropy and negative log likelihood over classes. The two ops do the common case alone;
// cross_entropy.cc composes them to losses with weights, smoothed labels, or probabilities as target.
#pragma once

#include "lazy/ops/core/functions.h"
#include "lazy/ops/core/op.h"

namespace lazuli::lazy {

// The label that losses of classes leave out, unless another is given: PyTorch's.
inline constexpr int64_t kIgnoredLabel = -100;

struct CrossEntropyOp {
  Reduction reduction;
  int64_t ignore_index = kIgnoredLabel;
  LAZULI_OP("cross_entropy", "aten::cross_entropy_loss", reduction, ignore_index);
  static constexpr OpDoc kDoc{
      "-log_softmax(logits) at the target class, 0 where the label is ignore_index, and the mean "
      "over the others; any other label outside [0, C) fails the run.",
      {"logits", "target"}};
  static constexpr Saves kSaves = kSaveXY;
  lowering::Op Lower(lowering::LoweringContext& c, lowering::Op logits, lowering::Op target) const;
  Tensors Vjp(const Saved& s, const Tensor& dy) const;
};

struct NllLossOp {
  Reduction reduction;
  int64_t ignore_index = kIgnoredLabel;
  LAZULI_OP("nll_loss", "aten::nll_loss", reduction, ignore_index);
  static constexpr OpDoc kDoc{
      "-log_probs at the target class, 0 where the label is ignore_index, and the mean over the "
      "others; any other label outside [0, C) fails the run.",
      {"log_probs", "target"}};
  static constexpr Saves kSaves = kSaveXY;
  lowering::Op Lower(lowering::LoweringContext& c, lowering::Op log_probs,
                     lowering::Op target) const;
  Tensors Vjp(const Saved& s, const Tensor& dy) const;
};

// With another label that does not count.
Tensor CrossEntropy(const Tensor& logits, const Tensor& target, Reduction reduction,
                    int64_t ignore_index);
Tensor NllLoss(const Tensor& log_probs, const Tensor& target, Reduction reduction,
               int64_t ignore_index);

}  // namespace lazuli::lazy
