// Chooses layouts: the activations of convolutions and pooling have their features innermost,
// elementwise work on them follows, everything else is row major. Where that changes between an
// array and its user, a copy is inserted: the reorders.
//
//   x = f32[8,3,32,32]{3,2,1,0} parameter(0)
//   c = f32[8,16,30,30]{3,2,1,0} convolution(x, w), dim_labels=bf01_oi01->bf01
//   =>  y = f32[8,3,32,32]{1,3,2,0} copy(x)  c = f32[8,16,30,30]{1,3,2,0} convolution(y, w), ...
//
// Parameters and results of the entry stay row major; called computations are not touched. Values
// do not depend on layouts.
#pragma once

#include "lowering/passes/pass.h"

namespace lazuli::cpu {

class AssignLayouts final : public lowering::Pass {
 public:
  std::string_view name() const override { return "cpu_assign_layouts"; }
  absl::StatusOr<bool> Run(hlo::Module& module) override;
};

}  // namespace lazuli::cpu
