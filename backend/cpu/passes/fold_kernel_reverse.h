// Folds a reverse of a convolution's kernel into its window, where the library flips the weights
// while it packs them.
//
//   r = reverse(w), dimensions={2,3}
//   c = convolution(dy, r), window={size=3x3}, dim_labels=bf01_io01->bf01
//   =>
//   c = convolution(dy, w), window={size=3x3 rhs_reversal=1x1}, dim_labels=bf01_io01->bf01
//
// Only reverses of all spatial dimensions and no others: the library's call, and so the bits of the
// result, are then those of the convolution with a kernel that was reversed before.
#pragma once

#include "lowering/passes/pass.h"

namespace lazuli::cpu {

class FoldKernelReverse final : public lowering::Pass {
 public:
  std::string_view name() const override { return "cpu_fold_kernel_reverse"; }
  absl::StatusOr<bool> Run(hlo::Module& module) override;
};

}  // namespace lazuli::cpu
