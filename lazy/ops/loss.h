// Softmax, cross entropy and the other losses.
#pragma once

#include "lazy/ops/functions.h"
#include "lazy/ops/op.h"

namespace lazuli::lazy {

struct SoftmaxOp {
  int64_t dim;
  LAZULI_OP("softmax", "aten::softmax", dim);
  static constexpr OpDoc kDoc{"exp(x) / sum(exp(x)) along dim, stable.", {"x"}};
  static constexpr Saves kSaves = kSaveResult;
  lowering::Op Lower(lowering::Builder& b, lowering::Op x) const;
  Tensors Vjp(const Saved& s, const Tensor& dy) const;
};

struct SafeSoftmaxOp {
  int64_t dim;
  LAZULI_OP("safe_softmax", "aten::_safe_softmax", dim);
  static constexpr OpDoc kDoc{"softmax along dim, but 0 where all elements are -infinity.", {"x"}};
  static constexpr Saves kSaves = kSaveResult;
  lowering::Op Lower(lowering::Builder& b, lowering::Op x) const;
  Tensors Vjp(const Saved& s, const Tensor& dy) const;
};
// Along the dim of x, which counts from behind if it is negative.
Tensor SafeSoftmax(const Tensor& x, int64_t dim);

struct LogSoftmaxOp {
  int64_t dim;
  LAZULI_OP("log_softmax", "aten::log_softmax", dim);
  static constexpr OpDoc kDoc{"log(softmax(x)) along dim, stable.", {"x"}};
  static constexpr Saves kSaves = kSaveResult;
  lowering::Op Lower(lowering::Builder& b, lowering::Op x) const;
  Tensors Vjp(const Saved& s, const Tensor& dy) const;
};

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

struct BceWithLogitsOp {
  LAZULI_OP("binary_cross_entropy_with_logits", "aten::binary_cross_entropy_with_logits");
  static constexpr OpDoc kDoc{
      "-(y log(sigmoid(x)) + (1 - y) log(1 - sigmoid(x))) of each element, stable.",
      {"logits", "target"}};
  static constexpr Saves kSaves = kSaveXY;
  lowering::Op Lower(lowering::Builder& b, lowering::Op logits, lowering::Op target) const;
  Tensors Vjp(const Saved& s, const Tensor& dy) const;
};

struct BceOp {
  LAZULI_OP("binary_cross_entropy", "aten::binary_cross_entropy");
  static constexpr OpDoc kDoc{
      "-(y log(x) + (1 - y) log(1 - x)) of each element; logarithms are at least -100.",
      {"x", "target"}};
  static constexpr Saves kSaves = kSaveXY;
  lowering::Op Lower(lowering::LoweringContext& c, lowering::Op x, lowering::Op target) const;
  Tensors Vjp(const Saved& s, const Tensor& dy) const;
};

// Of the difference of x and y.
struct HuberOp {
  bool smooth_l1;  // divided by delta, which is called beta there
  LAZULI_OP("huber_loss", "aten::huber_loss", smooth_l1);
  static constexpr OpDoc kDoc{
      "Of d, the size of the difference: d^2 / 2 up to delta, delta (d - delta / 2) beyond.",
      {"difference", "delta"}};
  static constexpr Saves kSaves = kSaveXY;
  lowering::Op Lower(lowering::Builder& b, lowering::Op difference, lowering::Op delta) const;
  Tensors Vjp(const Saved& s, const Tensor& dy) const;  // of the difference only
};

// 1 where the position along `dim` of the result equals the index, which lacks that dim. Losses,
// which have looked at their labels, ask for no check.
struct OneHotOp {
  int64_t dim;
  int64_t classes;
  DType dtype;
  bool checked = false;
  LAZULI_OP("one_hot", "aten::one_hot", dim, classes, dtype, checked);
  static constexpr OpDoc kDoc{
      "1 at each index along a new dim of `classes`, 0 elsewhere; where `checked`, one outside "
      "fails "
      "the run.",
      {"index"}};
  lowering::Op Lower(lowering::LoweringContext& c, lowering::Op index) const;
};

// With another label that does not count.
Tensor CrossEntropy(const Tensor& logits, const Tensor& target, Reduction reduction,
                    int64_t ignore_index);
Tensor NllLoss(const Tensor& log_probs, const Tensor& target, Reduction reduction,
               int64_t ignore_index);

// A loss for each element, or their mean or sum.
Tensor Reduced(const Tensor& loss, Reduction reduction);

}  // namespace lazuli::lazy
