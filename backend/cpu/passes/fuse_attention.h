// Makes one fusion of attention, and one of its gradient.
//
//   s = dot(q, k);  w = softmax(select(mask, s, -inf));  y = dot(w, v)
//   =>  y = fusion(q, k, mask, v), kind=kCustom, calls=attention
//
// Weights that nobody reads but the result and the gradient are then never in memory: a kernel
// makes them block by block (runtime/attention.h), and the gradient's makes them again from the
// largest score and the sum of each row, which the first fusion gives beside its result. The body
// of a fusion is the definition: the instructions as they stood, which the evaluator runs. So every
// device but this one, and every transform, sees plain instructions, and patterns of other origin
// than the op scaled_dot_product_attention are found, too. A sync between forward and backward has
// the weights as a result, and leaves products and softmax as they are.
#pragma once

#include "lowering/passes/pass.h"

namespace lazuli::cpu {

class FuseAttention final : public lowering::Pass {
 public:
  std::string_view name() const override { return "cpu_fuse_attention"; }
  absl::StatusOr<bool> Run(hlo::Module& module) override;
};

}  // namespace lazuli::cpu
