// Conditions on elements that only a run can decide, for functions that are made of others.
#pragma once

#include "lazy/ops/functions.h"
#include "lazy/ops/op.h"

namespace lazuli::lazy {

enum class Requirement : uint8_t {
  kFirstBag,     // embedding_bag: the value is the first offset
  kBagsInOrder,  // the value is an offset
  kFiniteRange,  // histograms; the value is a position
};

struct RequireOp {
  Requirement what;
  LAZULI_OP("require", "xla::require", what);
  static constexpr OpDoc kDoc{
      "x; the run fails where an element of `bad` (pred) is set, and names the one of `value` "
      "(s64) there.",
      {"x", "bad", "value"}};
  lowering::Op Lower(lowering::LoweringContext& c, lowering::Op x, lowering::Op bad,
                     lowering::Op value) const;
  Tensors Vjp(const Saved&, const Tensor& dy) const { return {dy, Tensor(), Tensor()}; }
};

// `bad` and `value` have equal dims.
Tensor Require(const Tensor& x, Requirement what, const Tensor& bad, const Tensor& value);
// Names the positions of what is bad.
Tensor RequireAll(const Tensor& x, Requirement what, const Tensor& good);

}  // namespace lazuli::lazy
