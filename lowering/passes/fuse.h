// Groups instructions into fusions, each of which becomes one kernel.
//
//   a = add(x, y)          =>   f = fusion(x, y), kind=kLoop, calls=fused_computation
//   m = multiply(a, a)          (whose body is the add and the multiply)
//
// A producer joins its user's group when all its users are there; elementwise values of the group's
// own shape that are also needed elsewhere, or that read the same arrays, become further outputs of
// it. What is cheap to make again (broadcasts, iotas, changes of index, scalar constants) is copied
// into every group that reads it. Reductions take their producers in, share a kernel with their
// siblings, and write producers that are also needed elsewhere; a select-and-scatter whose windows
// tile its result takes elementwise users in. Gathers and dynamic slices take their indices in;
// what they read lies in memory. Nothing is computed twice otherwise, and an expensive value is
// never moved behind a broadcast.
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "lowering/passes/fusion_target.h"
#include "lowering/passes/pass.h"

namespace lazuli::lowering {

class Fuse final : public Pass {
 public:
  explicit Fuse(FusionTarget target)
      : target_(std::move(target)), name_(target_.PassName("fuse")) {}
  std::string_view name() const override { return name_; }
  absl::StatusOr<bool> Run(hlo::Module& module) override;

 private:
  FusionTarget target_;
  std::string name_;
};

}  // namespace lazuli::lowering
