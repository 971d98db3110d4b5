// Writes scans as loops, so that backends compile what they do at each position.
//
// The loop's state is the position, the inputs, the carries and the results so far. A scan without
// positions is its carries and empty results. Left alone: scans with control dependencies.
//
//   ROOT s = (f32[9], f32[]) scan(x, init), dimensions={0}, num_carries=1, to_apply=f
//   =>  w = (s32[], f32[9], f32[], f32[9]) while((0, x, init, zeros)), condition=..., body=...
//       ROOT t = (f32[9], f32[]) tuple(w.3, w.2)
#pragma once

#include "lowering/passes/pass.h"

namespace lazuli::lowering {

class ExpandScans final : public Pass {
 public:
  std::string_view name() const override { return "expand_scans"; }
  absl::StatusOr<bool> Run(hlo::Module& module) override;
  bool is_needed() const override { return true; }
};

}  // namespace lazuli::lowering
