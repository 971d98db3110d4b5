// Ops that fail a run where elements break a condition that only a run can decide: numbers that are no
// probabilities, offsets out of order, an infinite range.
#pragma once

#include <cstdint>
#include <string>

#include "lazy/ops/core/functions.h"
#include "lazy/ops/core/op.h"

namespace lazuli::lazy {

enum class Requirement : uint8_t {
  kFirstBag,     // embedding_bag: the value is the first offset
  kBagsInOrder,  // the value is an offset
  kFiniteRange,  // histograms; the value is a position
  kWindowsMeet,  // istft; the value is a position
};

struct RequireOp {
  Requirement what;
  LAZULI_OP("require", "xla::require", what);
  static constexpr OpDoc kDoc{
      "x. The run fails if an element of `bad` (pred) is true; the error names the element of "
      "`value` (s64) at its position.",
      {"x", "bad", "value"}};
  lowering::Op Lower(lowering::LoweringContext& c, lowering::Op x, lowering::Op bad,
                     lowering::Op value) const;
  Tensors Vjp(const Saved&, const Tensor& dy) const { return {dy, Tensor(), Tensor()}; }
};

// `bad` and `value` have equal dims.
Tensor Require(const Tensor& x, Requirement what, const Tensor& bad, const Tensor& value);
// Names the positions of what is bad.
Tensor RequireAll(const Tensor& x, Requirement what, const Tensor& good);

// The program's own condition: an element of the pred operand that is not set fails the run with
// "function: what, but the element at position 3 does not".
struct AssertOp {
  std::string function, what;
  LAZULI_OP("assert_async", "aten::_assert_async", function, what);
  static constexpr OpDoc kDoc{
      "x; an element that is not set fails the run with the text, which names its position.",
      {"x"}};
  lowering::Op Lower(lowering::LoweringContext& c, lowering::Op x) const;
};

// Probabilities, or weights along the last dim of which at least `at_least` are not 0: the operand,
// but for a run that fails where one is negative, not finite, or beyond `most`.
struct ProbabilitiesOp {
  double most;
  int64_t at_least;
  LAZULI_OP("probabilities", "aten::probabilities", most, at_least);
  static constexpr OpDoc kDoc{
      "x. The run fails if an element is negative, not finite or above `most`, or if a row has "
      "fewer than `at_least` nonzero elements.",
      {"x"}};
  lowering::Op Lower(lowering::LoweringContext& c, lowering::Op x) const;
};

}  // namespace lazuli::lazy
