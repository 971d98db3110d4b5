// Softmax and its logarithm.
#pragma once

#include "lazy/ops/core/functions.h"
#include "lazy/ops/core/op.h"

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

// The logarithm of softmax along dim, in the type that sums are computed in (wide.h).
lowering::Op LogSoftmaxAlong(lowering::Builder& b, lowering::Op x, int64_t dim);

}  // namespace lazuli::lazy
