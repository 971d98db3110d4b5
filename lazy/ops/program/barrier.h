// A barrier for the compiler: what is behind it is not the value before it, and not there earlier
// than all that goes in.
#pragma once

#include <vector>

#include "lazy/ops/core/op.h"

namespace lazuli::lazy {

struct BarrierOp {
  int64_t count;
  LAZULI_OP("optimization_barrier", "xla::optimization_barrier", count);
  static constexpr OpDoc kDoc{
      "The first `count` operands, as values that are not merged with equal ones, and not computed "
      "before all operands are available.",
      {"xs"}};
  std::vector<lowering::Op> Lower(lowering::Builder& b, absl::Span<const lowering::Op> xs) const;
  Tensors Vjp(const Saved& s, absl::Span<const Tensor> dys) const;  // a barrier of the cotangents
};

// The tensors, some perhaps undefined, behind a barrier that waits for `after`, too.
Tensors Barrier(absl::Span<const Tensor> xs, absl::Span<const Tensor> after);

}  // namespace lazuli::lazy
