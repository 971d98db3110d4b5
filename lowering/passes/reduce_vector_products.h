// Makes reductions of dots whose elements are products of two vectors, and multiplications of dots
// whose elements are products of two numbers (outer products).
//
//   d = f32[b] dot(x, y), lhs_batch_dims={0}, rhs_batch_dims={0},      // x = f32[b,k], y =
//   f32[b,k]
//       lhs_contracting_dims={1}, rhs_contracting_dims={1}
//   =>  d = f32[b] reduce(multiply(x, y), 0), dimensions={1}, to_apply=add
//
// A matrix library has no use for its blocks there: the reduction's kernel reads both vectors three
// to seven times faster, takes in what computes them, and its error grows with the logarithm of
// their length (ir/evaluator/reduction_order.h). Dots of f32 and f64; narrower ones are wide by
// then.
#pragma once

#include "lowering/passes/pass.h"

namespace lazuli::lowering {

class ReduceVectorProducts final : public Pass {
 public:
  std::string_view name() const override { return "reduce_vector_products"; }
  absl::StatusOr<bool> Run(hlo::Module& module) override;
};

}  // namespace lazuli::lowering
