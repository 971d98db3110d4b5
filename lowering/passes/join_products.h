// Makes one dot of a sum of dots of equal shapes.
//
//   d1 = dot(a1, b1)  d2 = dot(a2, b2)  ...  s = add(add(d1, d2), ...)
//   =>  s = dot(concatenate(a1, a2, ...), concatenate(b1, b2, ...))     // along what is contracted
//
// The gradient of weights that a recurrent net uses in each step: every term is as large as the
// weights, and its factors are as small as the batch. One product writes the weights' gradient
// once. Done where the factors of a term have fewer elements than the term, for four terms and
// more, of integers, f32 and f64. Which products are added first changes, as every dot leaves open,
// and rounding with it.
#pragma once

#include "lowering/passes/pass.h"

namespace lazuli::lowering {

class JoinProducts final : public Pass {
 public:
  std::string_view name() const override { return "join_products"; }
  absl::StatusOr<bool> Run(hlo::Module& module) override;
};

}  // namespace lazuli::lowering
