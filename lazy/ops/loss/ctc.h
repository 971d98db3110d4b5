// The loss of connectionist temporal classification (Graves et al., 2006): sums over all ways to stretch labels along time,
// forward and, for the gradient, backward, as loops over time.
#pragma once

#include "lazy/ops/core/op.h"

namespace lazuli::lazy {

// Labels are extended: blanks stand before, between and after them.
struct CtcOp {
  bool shares;
  LAZULI_OP("ctc_loss", "aten::_ctc_loss", shares);
  static constexpr OpDoc kDoc{
      "-log of the summed probability of all paths through the extended labels [N], given their "
      "log-probabilities x [T, N, L]. With shares, also the share of the paths that are at each "
      "label at each time: [T, N, L].",
      {"x", "skips", "input_lengths", "label_lengths"}};
  // A length out of range fails the run. skips [N, L]: whether a way may come from the label before the previous one. Lengths [N], s64.
  std::vector<lowering::Op> Lower(lowering::LoweringContext& c, lowering::Op x, lowering::Op skips,
                                  lowering::Op input_lengths, lowering::Op label_lengths) const;
};

}  // namespace lazuli::lazy
