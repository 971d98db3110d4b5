// Functions of QR and of reflectors.
#include "ir/support/wrong_type.h"
#include "lazy/ops/core/dims.h"
#include "lazy/ops/decomposition/lapack.h"
#include "lazy/ops/decomposition/matrices.h"
#include "lazy/ops/decomposition/matrix_exp.h"
#include "lazy/ops/decomposition/orthogonal.h"

namespace lazuli::lazy {
namespace {

QrMode ModeOf(std::string_view mode) {
  if (mode == "reduced") return QrMode::kReduced;
  if (mode == "complete") return QrMode::kComplete;
  if (mode == "r") return QrMode::kTriangle;
  ThrowRecordError("linalg.qr", InvalidArgument("qr received unrecognized mode '", mode,
                                                "' but expected one of "
                                                "'reduced' (default), 'r', or 'complete'"));
}

void CheckReflectors(std::string_view op, const Tensor& A, const Tensor& tau) {
  CheckOfMatrices(op, A);
  CheckElements(op, A);
  if (A.dtype() != tau.dtype()) {
    ThrowRecordError(
        op, WrongType("tau dtype ", tau.shape(), " does not match input dtype ", A.shape()));
  }
  const Shape &a = A.shape(), &t = tau.shape();
  if (t.rank() + 1 != a.rank() || !SameDims(t, VectorShape(t.dtype(), a, t.dim(t.rank() - 1)))) {
    ThrowRecordError(op,
                     InvalidArgument("Expected the batches of input and tau to be equal, but got "
                                     "input ",
                                     a, " and tau ", t));
  }
}

}  // namespace

std::pair<Tensor, Tensor> LinalgQr(const Tensor& A, std::string_view mode) {
  constexpr char kOp[] = "linalg.qr";
  CheckOfMatrices(kOp, A);
  CheckElements(kOp, A);
  const Tensors f = RecordAll(QrOp{ModeOf(mode)}, {{A}});
  return {f[0], f[1]};
}

std::pair<Tensor, Tensor> Qr(const Tensor& A, bool some) {
  return LinalgQr(A, some ? "reduced" : "complete");
}

std::pair<Tensor, Tensor> Geqrf(const Tensor& A) {
  CheckOfMatrices("geqrf", A);
  CheckElements("geqrf", A);
  const Tensors f = RecordAll(GeqrfOp{}, {{A}});
  return {f[0], f[1]};
}

Tensor LinalgHouseholderProduct(const Tensor& A, const Tensor& tau) {
  constexpr char kOp[] = "linalg.householder_product";
  CheckReflectors(kOp, A, tau);
  if (RowsOf(A.shape()) < ColumnsOf(A.shape())) {
    ThrowRecordError(kOp, InvalidArgument("input.shape[-2] must be greater than or equal to "
                                          "input.shape[-1], it is ",
                                          A.shape()));
  }
  if (ColumnsOf(A.shape()) < tau.dim(tau.rank() - 1)) {
    ThrowRecordError(kOp, InvalidArgument("input.shape[-1] must be greater than or equal to "
                                          "tau.shape[-1], input is ",
                                          A.shape(), " and tau ", tau.shape()));
  }
  return Record(HouseholderProductOp{}, A, tau);
}
Tensor Orgqr(const Tensor& A, const Tensor& tau) { return LinalgHouseholderProduct(A, tau); }

Tensor Ormqr(const Tensor& A, const Tensor& tau, const Tensor& other, bool left, bool transpose) {
  constexpr char kOp[] = "ormqr";
  CheckOfMatrices(kOp, A, "input");
  CheckOfMatrices(kOp, other, "other");
  const int64_t n = left ? RowsOf(other.shape()) : ColumnsOf(other.shape());
  if (RowsOf(A.shape()) != n) {
    ThrowRecordError(kOp, InvalidArgument(left ? "other.shape[-2]" : "other.shape[-1]",
                                          " must be equal to input.shape[-2], they are ", n,
                                          " and ", RowsOf(A.shape())));
  }
  CheckReflectors(kOp, A, tau);
  CheckSameElements(kOp, A, other);
  const int64_t k = tau.dim(tau.rank() - 1);
  if (k > n || k > ColumnsOf(A.shape()) || A.rank() != other.rank() ||
      BatchOf(A.shape()) != BatchOf(other.shape())) {
    ThrowRecordError(kOp, InvalidArgument("input ", A.shape(), ", tau ", tau.shape(), " and other ",
                                          other.shape(), " do not fit each other"));
  }
  Dims high(static_cast<std::size_t>(A.rank()), 0);
  const Dims none = high;
  high.back() = n - k;
  const Tensor whole = PadZeros(FirstColumns(A, k), none, high, none);
  const Tensor Q = Record(HouseholderProductOp{}, whole, tau);
  const Tensor used = transpose ? Adjoint(Q) : Q;
  return left ? Matmul(used, other) : Matmul(other, used);
}

Tensor LinalgMatrixExp(const Tensor& A) {
  CheckSquare("linalg.matrix_exp", A);
  CheckElements("linalg.matrix_exp", A);
  return Record(MatrixExpOp{}, A);
}
Tensor MatrixExp(const Tensor& A) { return LinalgMatrixExp(A); }

}  // namespace lazuli::lazy
