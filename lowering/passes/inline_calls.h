// Replaces calls, and fusions that a module comes with, by the body of what they call, so that
// other passes see across them. A device makes fusions of its own.
//
// Callees come before callers, so nested calls are inlined in one walk. Left alone: calls that a
// device asks to keep, calls with side effects or control dependencies, and calls of a large body
// that several share, so that the module grows by no more than a constant per call. The callees
// themselves are removed by dce. Instructions without metadata get the call's.
//
//   double { x = f32[] parameter(0)  ROOT y = f32[] add(x, x) }
//   ENTRY main { p = f32[] parameter(0)  ROOT c = f32[] call(p), to_apply=double }
//   =>  ENTRY main { p = f32[] parameter(0)  ROOT y = f32[] add(p, p) }
#pragma once

#include <functional>
#include <utility>

#include "lowering/passes/pass.h"
#include "lowering/passes/rewriter.h"

namespace lazuli::lowering {

// Which calls stay as they are, for a later pass of a device; null: none.
using CallFilter = std::function<bool(const hlo::Instruction& call)>;

class InlineCalls final : public Pass {
 public:
  explicit InlineCalls(CallFilter stays = nullptr) : stays_(std::move(stays)) {}
  std::string_view name() const override { return "inline_calls"; }
  absl::StatusOr<bool> Run(hlo::Module& module) override;
  bool is_needed() const override { return true; }

 private:
  const CallFilter stays_;
};

// Replaces the call by copies of its body's instructions. Returns that of the root.
hlo::Instruction* InlineCall(Rewriter& rewriter, hlo::Instruction* call);

}  // namespace lazuli::lowering
