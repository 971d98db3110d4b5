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

#include <cstddef>
#include <functional>

#include "lowering/passes/pass.h"

namespace lazuli::backend {

class Fuse final : public lowering::Pass {
 public:
  // supports(i): whether a kernel can compute i; max_args: parameters and outputs of one kernel
  // together.
  Fuse(std::function<bool(const hlo::Instruction&)> supports, std::size_t max_args)
      : supports_(std::move(supports)), max_args_(max_args) {}
  std::string_view name() const override { return "cpu_fuse"; }
  absl::StatusOr<bool> Run(hlo::Module& module) override;

 private:
  std::function<bool(const hlo::Instruction&)> supports_;
  std::size_t max_args_;
};

}  // namespace lazuli::backend
