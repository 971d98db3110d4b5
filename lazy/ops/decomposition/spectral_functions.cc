// Functions of eigenvalues and singular values.
#include <limits>

#include "lazy/ops/core/dims.h"
#include "lazy/ops/decomposition/check_info.h"
#include "lazy/ops/decomposition/lapack.h"
#include "lazy/ops/decomposition/matrices.h"
#include "lazy/ops/decomposition/spectral.h"
#include "lazy/tensor/function_scope.h"

namespace lazuli::lazy {
namespace {

bool ReadsLower(std::string_view op, std::string_view uplo) {
  const char c = uplo.size() == 1 ? uplo[0] : ' ';
  if (c == 'L' || c == 'l') return true;
  if (c == 'U' || c == 'u') return false;
  ThrowRecordError(op, InvalidArgument("Expected UPLO argument to be 'L' or 'U', but got ", uplo));
}

std::pair<Tensor, Tensor> Eigh(std::string_view op, const Tensor& A, std::string_view uplo,
                               bool vectors) {
  CheckSquare(op, A);
  CheckElements(op, A);
  const Tensors e = RecordAll(EighOp{ReadsLower(op, uplo), vectors}, {{A}});
  const Tensors checked = Checked(Algorithm::kEigen, e[2], {{e[0], e[1]}});
  return {checked[0], checked[1]};
}

// A with zeros in place of NaNs and infinities, for which LAPACK may not come to an end, and an info: 1
// if there are any.
std::pair<Tensor, Tensor> FiniteMatrices(const Tensor& A) {
  if (A.shape().num_elements() == 0) return {A, FullConstant(Shape(DType::kS32), 0, A.device())};
  const Tensor finite = Isfinite(Detach(A));
  const Tensor bad = To(Any(LogicalNot(finite)), DType::kS32);
  return {Where(finite, A, Constant(0, A.dtype())), bad};
}

std::pair<Tensor, Tensor> Eig(std::string_view op, const Tensor& in, bool vectors) {
  CheckSquare(op, in);
  CheckElements(op, in);
  const auto [A, bad] = FiniteMatrices(in);
  const Tensors e = RecordAll(EigOp{vectors}, {{A}});
  const Tensors finite = Checked(Algorithm::kFinite, bad, {{e[0], e[1]}});
  const Tensors checked = Checked(Algorithm::kEigen, e[2], finite);
  return {checked[0], checked[1]};
}

void CheckDriver(const std::optional<std::string>& driver) {
  if (!driver) return;
  ThrowRecordError(
      "torch.linalg.svd",
      InvalidArgument("keyword argument `driver=` is only supported on CUDA inputs with "
                      "cuSOLVER backend."));
}

struct Singular {
  Tensor U, S, Vh;
};

Singular CheckedSvd(std::string_view op, const Tensor& A, bool full_matrices, bool vectors) {
  CheckOfMatrices(op, A);
  CheckElements(op, A);
  const Tensors s = RecordAll(SvdOp{full_matrices, vectors}, {{A}});
  const Tensors checked = Checked(Algorithm::kSvd, s[3], {{s[0], s[1], s[2]}});
  return {checked[0], checked[1], checked[2]};
}

// The gradient of the values is made of the vectors.
bool NeedsVectors(const Tensor& A) { return WantsGrad({{A}}); }

}  // namespace

std::pair<Tensor, Tensor> LinalgEigh(const Tensor& A, std::string_view UPLO) {
  const FunctionScope function("linalg.eigh");
  return Eigh("linalg.eigh", A, UPLO, /*vectors=*/true);
}
Tensor LinalgEigvalsh(const Tensor& A, std::string_view UPLO) {
  const FunctionScope function("linalg.eigvalsh");
  return Eigh("linalg.eigvalsh", A, UPLO, NeedsVectors(A)).first;
}
std::pair<Tensor, Tensor> LinalgEig(const Tensor& A) {
  const FunctionScope function("torch.linalg.eig");
  return Eig("linalg.eig", A, /*vectors=*/true);
}
Tensor LinalgEigvals(const Tensor& A) {
  const FunctionScope function("torch.linalg.eigvals");
  return Eig("linalg.eigvals", A, NeedsVectors(A)).first;
}

std::tuple<Tensor, Tensor, Tensor> LinalgSvd(const Tensor& A, bool full_matrices,
                                             const std::optional<std::string>& driver) {
  const FunctionScope function("linalg.svd");
  CheckDriver(driver);
  const auto [U, S, Vh] = CheckedSvd("linalg.svd", A, full_matrices, /*vectors=*/true);
  return {U, S, Vh};
}
Tensor LinalgSvdvals(const Tensor& A, const std::optional<std::string>& driver) {
  const FunctionScope function("linalg.svd");
  CheckDriver(driver);
  return CheckedSvd("linalg.svdvals", A, /*full_matrices=*/false, NeedsVectors(A)).S;
}

std::tuple<Tensor, Tensor, Tensor> Svd(const Tensor& A, bool some, bool compute_uv) {
  const FunctionScope function("linalg.svd");
  if (compute_uv) {
    const auto [U, S, Vh] = CheckedSvd("svd", A, !some, /*vectors=*/true);
    return {U, S, Adjoint(Vh)};
  }
  const Tensor S = CheckedSvd("svd", A, /*full_matrices=*/false, NeedsVectors(A)).S;
  const auto zeros = [&](int64_t n) {
    return FullConstant(MatrixShape(A.shape(), n, n), 0, A.device());
  };
  return {zeros(RowsOf(A.shape())), S, zeros(ColumnsOf(A.shape()))};
}

}  // namespace lazuli::lazy
