// Ops that leave elements as they are, and say what their gradient is.
#pragma once

#include "lazy/ops/core/functions.h"
#include "lazy/ops/core/op.h"

namespace lazuli::lazy {

// The extremum, or median, of all elements of x, whose gradient is that of torch's: those that are
// equal to it, or NaN as it is, share it.
struct SharedGradientOp {
  LAZULI_OP("shared_gradient", "xla::shared_gradient");
  static constexpr OpDoc kDoc{
      "The value; the elements of x that are equal to it share its gradient.", {"x", "value"}};
  static constexpr Saves kSaves = kSaveXY;
  lowering::Op Lower(lowering::Builder&, lowering::Op, lowering::Op value) const { return value; }
  Tensors Vjp(const Saved& s, const Tensor& dy) const;
};
// f(x), a value of rank 0, with that gradient.
template <class F>
Tensor WithSharedGradient(const Tensor& x, F&& f) {
  const Operand in(x);
  if (!WantsGrad(absl::MakeConstSpan(&in, 1))) return f(x);
  return Record(SharedGradientOp{}, x, f(Detach(x)));
}

struct UnaffectedOp {
  LAZULI_OP("unaffected", "xla::unaffected");
  static constexpr OpDoc kDoc{"x, whose gradient for y is 0.", {"x", "y"}};
  lowering::Op Lower(lowering::Builder&, lowering::Op x, lowering::Op) const { return x; }
  Tensors Vjp(const Saved&, const Tensor& dy) const { return {dy, Tensor()}; }
};
// x, with a gradient of 0 for y if y wants one.
Tensor Unaffected(const Tensor& x, const Tensor& y);

}  // namespace lazuli::lazy
