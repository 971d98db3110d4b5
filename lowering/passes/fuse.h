// Groups instructions into fusions. Each fusion becomes one kernel, which reads and writes memory once
// instead of once per instruction.
//
//   a = add(x, y)          =>   f = fusion(x, y), kind=kLoop, calls=fused_computation
//   m = multiply(a, a)          (whose body is the add and the multiply)
//
// The pass walks from users to producers, so every user of an instruction has its place before the
// instruction gets one. An instruction is placed by the first of these that applies:
//
//   - It is cheap to make again (a broadcast, an iota, a change of index, a scalar constant): each group
//     that reads it gets a copy, and it has a group of its own only if something else reads it.
//   - All its users are in one group: it joins that group, and its result never reaches memory.
//   - A group reads the same arrays, or values of it, and has its shape: it becomes a further output
//     of that group, if no path leads from the group's results back to it.
//   - Else it starts a group.
//
// Reductions start groups. They take their producers in, share a kernel with reductions of the same
// array over the same dimensions, and write producers that are also needed elsewhere. A
// select-and-scatter whose windows tile its result takes its elementwise users in. A gather or
// dynamic slice takes its indices in, but what it reads must lie in memory, since it reads anywhere.
//
// But for what is cheap, nothing is computed twice, and an expensive value is never moved behind a
// broadcast. A group has a limited number of members, inputs and outputs. Values do not depend on the
// groups.
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
