// What a run checks of numbers that are drawn with.
#pragma once

#include <cstdint>

#include "lazy/ops/op.h"

namespace lazuli::lazy {

// Probabilities, or weights along the last dim of which at least `at_least` are not 0: the operand,
// but for a run that fails where one is negative, not finite, or beyond `most`.
struct ProbabilitiesOp {
  double most;
  int64_t at_least;
  LAZULI_OP("probabilities", "aten::probabilities", most, at_least);
  static constexpr OpDoc kDoc{
      "x; an element that is negative, not finite, or above `most` fails the run, and so does a "
      "row "
      "with fewer than `at_least` elements that are not 0.",
      {"x"}};
  lowering::Op Lower(lowering::LoweringContext& c, lowering::Op x) const;
};

}  // namespace lazuli::lazy
