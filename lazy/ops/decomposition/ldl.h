// Factors of symmetric and Hermitian matrices that need not be positive-definite.
#pragma once

#include "lazy/ops/core/functions.h"
#include "lazy/ops/core/op.h"

namespace lazuli::lazy {

struct LdlOp {
  bool hermitian;
  LAZULI_OP("ldl_factor", "aten::linalg_ldl_factor_ex", hermitian);
  static constexpr OpDoc kDoc{
      "L and D of matrices L D L^T, or L D L^H, in one triangle, the pivots (s32), and an info per "
      "matrix.",
      {"A"}};
  std::array<lowering::Op, 3> Lower(lowering::Builder& b, lowering::Op x) const;
};

struct LdlSolveOp {
  bool hermitian;
  LAZULI_OP("ldl_solve", "aten::linalg_ldl_solve", hermitian);
  static constexpr OpDoc kDoc{"A^-1 B from the factors and pivots of A.", {"LD", "pivots", "B"}};
  lowering::Op Lower(lowering::Builder& b, lowering::Op factors, lowering::Op pivots,
                     lowering::Op x) const;
};

}  // namespace lazuli::lazy
