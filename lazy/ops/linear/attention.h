// Attention: softmax(query key^T scale + mask) value.
//
// Neither the result nor the gradient keeps the weights: what is kept of each row is its largest
// score and the divisor of its weights, exp(score - largest) / divisor. In HLO both ops are
// composites, whose bodies are their definitions, so a device may have kernels for them that never
// write the weights (backend/cpu/passes/fuse_attention.h).
#pragma once

#include <cstdint>
#include <vector>

#include "lazy/ops/core/functions.h"
#include "lazy/ops/core/op.h"

namespace lazuli::lazy {

// Operands of one dtype and of equal batch dims in front. The mask, if there is one, broadcasts to
// the scores: bools are true where a query sees a key, floats are added, and have a gradient if
// they have the scores' dims.
struct AttentionOp {
  bool causal;  // query i sees keys 0 to i
  double scale;
  LAZULI_OP("scaled_dot_product_attention", "aten::scaled_dot_product_attention", causal, scale);
  static constexpr OpDoc kDoc{
      "softmax(query key^T scale + mask) value; of each row also the largest score, or 0 if all "
      "are -infinity, and the sum of exp(score - largest), or 1, which have no gradient of their "
      "own.",
      {"query", "key", "value", "mask"}};
  static constexpr Saves kSaves{.inputs = 0b1111, .outputs = 0b110};
  bool InferAll(absl::Span<const Value> in, Shapes& out) const;
  std::vector<lowering::Op> Lower(lowering::Builder& b, lowering::Op query, lowering::Op key,
                                  lowering::Op value, absl::Span<const lowering::Op> mask) const;
  Tensors Vjp(const Saved& s, absl::Span<const Tensor> dys) const;
};

struct AttentionGradientOp {
  bool causal;
  double scale;
  int64_t wanted;  // which gradients it gives, as a bit mask: of query, key, value, mask
  LAZULI_OP("scaled_dot_product_attention_gradient", "aten::scaled_dot_product_attention_backward",
            causal, scale, wanted);
  static constexpr OpDoc kDoc{
      "The gradients of attention that are wanted. Its own gradients are those of attention's, of "
      "which largest and divisor are part.",
      {"query", "key", "value", "largest", "divisor", "dresult"}};
  static constexpr Saves kSaves{.inputs = 0b1100111};
  bool InferAll(absl::Span<const Value> in, Shapes& out) const;
  std::vector<lowering::Op> Lower(lowering::Builder& b, lowering::Op query, lowering::Op key,
                                  lowering::Op value, lowering::Op largest, lowering::Op divisor,
                                  lowering::Op dresult, absl::Span<const lowering::Op> mask) const;
  Tensors Vjp(const Saved& s, absl::Span<const Tensor> dys) const;
};

}  // namespace lazuli::lazy
