// A recurrent layer over all steps of its sequences, in one direction: a loop on the device.
//
// The sums of the gates that come from the input are made before, as one product for all steps; the
// loop has the product with the hidden state and the gates alone. Its gradient is a second loop over
// what the first one kept, and the gradient of the weight one product for all steps after it.
#pragma once

#include <vector>

#include "lazy/ops/core/functions.h"
#include "lazy/ops/core/op.h"
#include "lazy/ops/recurrent/cell.h"

namespace lazuli::lazy {

// T steps of B sequences, H elements per state and gate, P of the hidden state: H, or what the
// projection makes of it. Operands that a layer lacks are left out.
struct RecurrentOp {
  Cell cell;
  bool reverse;    // from the last step to the first
  bool projected;  // hidden states are projected: of an LSTM (Sak et al., 2014)
  bool masked;     // sequences have lengths: states do not change beyond, and results are 0
  bool keeps;      // gives what the gradient reads, too
  LAZULI_OP("recurrent", "xla::recurrent", cell, reverse, projected, masked, keeps);
  static constexpr OpDoc kDoc{
      "The hidden states [T, B, P] of a recurrent layer, the last one [B, P], the last cell state "
      "[B, H] of an LSTM, and with keeps arrays [T, B, H] that its gradient reads (a cotangent of "
      "them is ignored). Operands: the sums of the gates that come from the input, the weight "
      "[gates H, P] and the first hidden state [B, P]; after them the first cell state of an LSTM, "
      "the hidden bias [H] of a GRU's new gate, the weight [P, H] of the projection, the lengths "
      "s64[B].",
      {"sums", "weight", "hidden", "others"}};
  static constexpr Saves kSaves{.inputs = ~0u, .outputs = ~0u};
  std::vector<lowering::Op> Lower(lowering::Builder& b, lowering::Op sums, lowering::Op weight,
                                  lowering::Op hidden, absl::Span<const lowering::Op> others) const;
  // By RecurrentGradOp; step by step where it must be differentiable itself.
  Tensors Vjp(const Saved& s, absl::Span<const Tensor> dys) const;
};

// The loop of the gradient.
struct RecurrentGradOp {
  Cell cell;
  bool reverse, projected, masked;
  LAZULI_OP("recurrent_grad", "xla::recurrent_grad", cell, reverse, projected, masked);
  static constexpr OpDoc kDoc{
      "From the gradients of a recurrent layer's hidden states and last states to those of its "
      "sums "
      "[T, B, gates H], of the sums from the hidden state if they are others (GRU), of the "
      "projected "
      "hidden states, and of the first states. Operands: the gradients of the results, the weight, "
      "the weight of the projection, the lengths, and what the layer kept.",
      {"hidden", "last", "others"}};
  std::vector<lowering::Op> Lower(lowering::Builder& b, lowering::Op hidden, lowering::Op last,
                                  absl::Span<const lowering::Op> others) const;
};

// The same gradients as RecurrentOp::Vjp, recorded step by step by ops that have gradients.
Tensors UnrolledGradient(const RecurrentOp& op, const Saved& s, absl::Span<const Tensor> dys);

}  // namespace lazuli::lazy
