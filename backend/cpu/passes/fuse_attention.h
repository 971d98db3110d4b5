// Makes one fusion of attention, and one of its gradient.
//
//   s = dot(q, k);  w = softmax(select(mask, s, -inf));  y = dot(w, v)
//   =>  y = fusion(q, k, mask, v), kind=kCustom, calls=attention
//
// The weights are then never in memory: a kernel makes them block by block (runtime/attention.h),
// and the gradient's makes them again from the largest score and the divisor of each row. The body
// of a fusion is the definition: the instructions as they stood, which the evaluator runs. Of a
// composite of bf16 or f16 it is the same in f32 (widened_copy.h): operands are read as they lie,
// and only results are rounded.
//
// Whether there is a fusion changes the last bits, so it may not depend on where a sync falls. It is
// made of a composite (ir/hlo/composite.h), which is what scaled_dot_product_attention() and its
// gradient record: its body alone decides. Plain instructions, as JAX and PyTorch write attention,
// become one only in a module that comes as a whole, and only if nobody reads their weights.
#pragma once

#include "lowering/passes/pass.h"

namespace lazuli::cpu {

// Whether the call is a composite that FuseAttention makes a fusion of. Other calls are inlined
// before.
bool IsAttentionCall(const hlo::Instruction& call);

class FuseAttention final : public lowering::Pass {
 public:
  explicit FuseAttention(bool is_whole_module = true) : is_whole_module_(is_whole_module) {}
  std::string_view name() const override { return "cpu_fuse_attention"; }
  absl::StatusOr<bool> Run(hlo::Module& module) override;

 private:
  const bool is_whole_module_;
};

}  // namespace lazuli::cpu
