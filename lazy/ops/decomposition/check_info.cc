#include "lazy/ops/decomposition/check_info.h"

#include <array>

namespace lazuli::lazy {
namespace {

using hlo::ComparisonDirection;
using lowering::Opcode;

// The words of PyTorch, in which # is the number of LAPACK.
std::string_view WordsOf(Algorithm what) {
  static constexpr std::array<std::string_view, 9> kWords = {
      "The diagonal element # is zero, the inversion could not be completed because the input "
      "matrix is singular.",
      "The solver failed because the input matrix is singular.",
      "The factorization could not be completed because the input is not positive-definite (the "
      "leading minor of order # is not positive-definite).",
      "The algorithm failed to converge because the input matrix is ill-conditioned or has too "
      "many "
      "repeated eigenvalues (error code: #).",
      "The algorithm failed to converge because the input matrix is ill-conditioned or has too "
      "many "
      "repeated singular values (error code: #).",
      "U[#,#] is zero and using it on lu_solve would result in a division by zero. If you still "
      "want "
      "to perform the factorization, consider calling linalg.lu(A, pivot) or "
      "linalg.lu_factor_ex(A, pivot)",
      "D[#,#] is zero and using it on ldl_solve would result in a division by zero. If you still "
      "want to perform the factorization, consider calling linalg.ldl_factor_ex(A)",
      "input tensor should not contain infs or NaNs.",
      "The least squares solution could not be computed because the input matrix does not have "
      "full "
      "rank (error code: #).",
  };
  return kWords[static_cast<std::size_t>(what)];
}

std::string_view NameOf(Algorithm what) {
  static constexpr std::array<std::string_view, 9> kNames = {
      "linalg.inv",       "linalg.solve",      "linalg.cholesky", "linalg.eig",  "linalg.svd",
      "linalg.lu_factor", "linalg.ldl_factor", "linalg.eig",      "linalg.lstsq"};
  return kNames[static_cast<std::size_t>(what)];
}

}  // namespace

std::vector<lowering::Op> CheckInfoOp::Lower(lowering::LoweringContext& c, lowering::Op info,
                                             absl::Span<const lowering::Op> results) const {
  lowering::Builder& b = c.builder;
  const std::vector<lowering::Op> same(results.begin(), results.end());
  const std::string name(NameOf(what));
  const lowering::Op none = b.ZerosLike(info);
  if (what == Algorithm::kSvd) {
    c.CheckMatrices(b.Compare(ComparisonDirection::kLt, info, none), info, name,
                    "The algorithm failed to converge because the input matrix contained "
                    "non-finite values.");
    c.CheckMatrices(b.Compare(ComparisonDirection::kGt, info, none), info, name,
                    std::string(WordsOf(what)));
    return same;
  }
  c.CheckMatrices(b.Compare(ComparisonDirection::kNe, info, none), info, name,
                  std::string(WordsOf(what)));
  return same;
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
