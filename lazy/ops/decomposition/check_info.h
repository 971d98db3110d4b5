// What a run finds out of decompositions: that one failed, for which LAPACK has a number.
#pragma once

#include "lazy/ops/core/functions.h"
#include "lazy/ops/core/op.h"

namespace lazuli::lazy {

// What the numbers are of, which decides what they mean.
enum class Algorithm : uint8_t {
  kInverse,
  kSolve,
  kCholesky,
  kEigen,
  kSvd,
  kLu,
  kLdl,
  kFinite,
  kLeastSquares
};

struct CheckInfoOp {
  Algorithm what;
  LAZULI_OP("check_info", "xla::check_info", what);
  static constexpr OpDoc kDoc{
      "The operands behind info; the run fails where an info of a decomposition is not 0.",
      {"info", "results"}};
  std::vector<lowering::Op> Lower(lowering::LoweringContext& c, lowering::Op info,
                                  absl::Span<const lowering::Op> results) const;
  Tensors Vjp(const Saved& s, absl::Span<const Tensor> dys) const;
};

// The place of the first 0 on each diagonal [..., n], from 1 on, or 0: an info.
Tensor FirstZero(const Tensor& diagonal);
// The results, but for a run in which the info of one matrix is not 0.
Tensors Checked(Algorithm what, const Tensor& info, absl::Span<const Tensor> results);
inline Tensor Checked(Algorithm what, const Tensor& info, const Tensor& result) {
  return Checked(what, info, absl::MakeConstSpan(&result, 1))[0];
}

}  // namespace lazuli::lazy
