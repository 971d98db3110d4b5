// Replaces calls, and fusions that a module comes with, by the body of what they call, so that
// other passes see across them. A device makes fusions of its own.
//
// Callees come before callers, so nested calls are inlined in one walk. Left alone: calls with side
// effects or control dependencies, and calls of a large body that several share, so that the module
// grows by no more than a constant per call. The callees themselves are removed by dce.
// Instructions without metadata get the call's.
//
//   double { x = f32[] parameter(0)  ROOT y = f32[] add(x, x) }
//   ENTRY main { p = f32[] parameter(0)  ROOT c = f32[] call(p), to_apply=double }
//   =>  ENTRY main { p = f32[] parameter(0)  ROOT y = f32[] add(p, p) }
#pragma once

#include "lowering/passes/pass.h"

namespace lazuli::lowering {

class InlineCalls final : public Pass {
 public:
  std::string_view name() const override { return "inline_calls"; }
  absl::StatusOr<bool> Run(hlo::Module& module) override;
  bool is_needed() const override { return true; }
};

}  // namespace lazuli::lowering
