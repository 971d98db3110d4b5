// Makes one kernel of a loop whose state is elementwise, and of the elementwise work around it.
//
//   t = tuple(zero, x)  w = while(t), condition=(i < 50), body=(i + 1, x * x + c)  r = w.1
//     =>  f = fusion(x, c), calls={ ... while ... }
//
// The kernel keeps the state in registers: iterations cost neither memory nor a thunk. Reductions
// and dots of few elements in the loop are written out first (unroll_reductions.h). Which loops
// those are the code generator says (codegen/while_kernel.cc); all else is left alone.
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "lowering/passes/fusion_target.h"
#include "lowering/passes/pass.h"

namespace lazuli::lowering {

class FuseLoops final : public Pass {
 public:
  explicit FuseLoops(FusionTarget target)
      : target_(std::move(target)), name_(target_.PassName("fuse_loops")) {}
  std::string_view name() const override { return name_; }
  absl::StatusOr<bool> Run(hlo::Module& module) override;

 private:
  FusionTarget target_;
  std::string name_;
};

}  // namespace lazuli::lowering
