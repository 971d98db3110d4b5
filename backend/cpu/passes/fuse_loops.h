// Makes one kernel of a loop whose state is elementwise, and of the elementwise work around it.
//
//   t = tuple(zero, x)  w = while(t), condition=(i < 50), body=(i + 1, x * x + c)  r = w.1
//     =>  f = fusion(x, c), calls={ ... while ... }
//
// The kernel keeps the state in registers: iterations cost neither memory nor a thunk. Reductions
// and dots of few elements in the loop are written out first (unroll_reductions.h). Which loops
// those are the code generator says (codegen/while_kernel.cc); all else is left alone.
#pragma once

#include <functional>

#include "lowering/passes/pass.h"

namespace lazuli::backend {

class FuseLoops final : public lowering::Pass {
 public:
  // supports(i): whether a kernel can compute i; supports_loop(body): whether one can be made of a
  // body with a loop.
  FuseLoops(std::function<bool(const hlo::Instruction&)> supports,
            std::function<bool(const hlo::Computation&)> supports_loop)
      : supports_(std::move(supports)), supports_loop_(std::move(supports_loop)) {}
  std::string_view name() const override { return "cpu_fuse_loops"; }
  absl::StatusOr<bool> Run(hlo::Module& module) override;

 private:
  std::function<bool(const hlo::Instruction&)> supports_;
  std::function<bool(const hlo::Computation&)> supports_loop_;
};

}  // namespace lazuli::backend
