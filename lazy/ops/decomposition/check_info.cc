#include "lazy/ops/decomposition/check_info.h"

#include <string>
#include <string_view>

namespace lazuli::lazy {
namespace {

using hlo::ComparisonDirection;

struct Facts {
  std::string_view op;
  std::string_view words;  // of PyTorch's message; # stands for LAPACK's number
};

constexpr Facts FactsOf(Algorithm what) {
  switch (what) {
    case Algorithm::kInverse:
      return {"linalg.inv",
              "The diagonal element # is zero, the inversion could not be completed because the "
              "input matrix is singular."};
    case Algorithm::kSolve:
      return {"linalg.solve", "The solver failed because the input matrix is singular."};
    case Algorithm::kCholesky:
      return {"linalg.cholesky",
              "The factorization could not be completed because the input is not "
              "positive-definite (the leading minor of order # is not positive-definite)."};
    case Algorithm::kEigen:
      return {"linalg.eig",
              "The algorithm failed to converge because the input matrix is ill-conditioned or "
              "has too many repeated eigenvalues (error code: #)."};
    case Algorithm::kSvd:
      return {"linalg.svd",
              "The algorithm failed to converge because the input matrix is ill-conditioned or "
              "has too many repeated singular values (error code: #)."};
    case Algorithm::kLu:
      return {"linalg.lu_factor",
              "U[#,#] is zero and using it on lu_solve would result in a division by zero. If you "
              "still want to perform the factorization, consider calling linalg.lu(A, pivot) or "
              "linalg.lu_factor_ex(A, pivot)"};
    case Algorithm::kLdl:
      return {"linalg.ldl_factor",
              "D[#,#] is zero and using it on ldl_solve would result in a division by zero. If "
              "you still want to perform the factorization, consider calling "
              "linalg.ldl_factor_ex(A)"};
    case Algorithm::kFinite:
      return {"linalg.eig", "input tensor should not contain infs or NaNs."};
    case Algorithm::kLeastSquares:
      return {"linalg.lstsq",
              "The least squares solution could not be computed because the input matrix does not "
              "have full rank (error code: #)."};
  }
  return {};
}

}  // namespace

std::vector<lowering::Op> CheckInfoOp::Lower(lowering::LoweringContext& c, lowering::Op info,
                                             absl::Span<const lowering::Op> results) const {
  lowering::Builder& b = c.builder;
  const Facts facts = FactsOf(what);
  const auto check = [&](ComparisonDirection fails, std::string_view words) {
    c.CheckMatrices(b.Compare(fails, info, b.ZerosLike(info)), info, std::string(facts.op),
                    std::string(words));
  };
  if (what == Algorithm::kSvd) {
    check(ComparisonDirection::kLt,
          "The algorithm failed to converge because the input matrix contained non-finite values.");
  }
  check(what == Algorithm::kSvd ? ComparisonDirection::kGt : ComparisonDirection::kNe, facts.words);
  return {results.begin(), results.end()};
}

Tensors CheckInfoOp::Vjp(const Saved&, absl::Span<const Tensor> dys) const {
  Tensors grads{Tensor()};
  grads.insert(grads.end(), dys.begin(), dys.end());
  return grads;
}

Tensor FirstZero(const Tensor& diagonal) {
  const Tensor values = Detach(diagonal);
  const Tensor zero = To(Eq(values, Constant(0, values.dtype())), DType::kS32);
  return (To(Argmax(zero, -1), DType::kS32) + 1.0) * Amax(zero, {-1});
}

Tensors Checked(Algorithm what, const Tensor& info, absl::Span<const Tensor> results) {
  std::vector<Operand> operands{info};
  operands.insert(operands.end(), results.begin(), results.end());
  return RecordAll(CheckInfoOp{what}, operands);
}

}  // namespace lazuli::lazy
