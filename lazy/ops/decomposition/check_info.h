// The check of a run that a decomposition did not fail; LAPACK gives a number, info, where it did.
#pragma once

#include "lazy/ops/core/functions.h"
#include "lazy/ops/core/op.h"

namespace lazuli::lazy {

// The algorithm that gives info, which decides what a number means.
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
      "The operands after info; the run fails if info of a matrix is not 0.", {"info", "results"}};
  std::vector<lowering::Op> Lower(lowering::LoweringContext& c, lowering::Op info,
                                  absl::Span<const lowering::Op> results) const;
  Tensors Vjp(const Saved& s, absl::Span<const Tensor> dys) const;
};

// An info: the position, counted from 1, of the first 0 on each diagonal [..., n]; 0 if there is none.
Tensor FirstZero(const Tensor& diagonal);
// The results; a run fails if info of a matrix is not 0.
Tensors Checked(Algorithm what, const Tensor& info, absl::Span<const Tensor> results);
inline Tensor Checked(Algorithm what, const Tensor& info, const Tensor& result) {
  return Checked(what, info, absl::MakeConstSpan(&result, 1))[0];
}

}  // namespace lazuli::lazy
