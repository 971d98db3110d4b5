// Folds transposes into the dimension numbers of dots and the dim_labels of convolutions that read
// them, or that they read.
//
// A dot takes an operand's transpose where the order of its free dimensions stays; a convolution
// takes any, on any side. A dot's transposed result stays: the dot of the swapped operands has the
// same sums, but a library adds them in another order, and values would depend on where a sync
// falls. The reverse of a kernel is left alone (the gradient of a convolution is recognised by it),
// and so are other users.
//
//   t = f32[3,8] transpose(w: f32[8,3]), dimensions={1,0}
//   ROOT d = f32[4,8] dot(x, t), lhs_contracting_dims={1}, rhs_contracting_dims={0}
//   =>  ROOT d = f32[4,8] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={1}
#pragma once

#include "lowering/passes/pass.h"

namespace lazuli::lowering {

class FoldTransposes final : public Pass {
 public:
  std::string_view name() const override { return "fold_transposes"; }
  absl::StatusOr<bool> Run(hlo::Module& module) override;
};

}  // namespace lazuli::lowering
