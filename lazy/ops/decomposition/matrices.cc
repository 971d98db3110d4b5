#include "lazy/ops/decomposition/matrices.h"

#include "ir/support/wrong_type.h"
#include "lazy/ops/core/dims.h"
#include "lazy/ops/decomposition/lapack.h"
#include "lazy/ops/elementwise/elementwise.h"

namespace lazuli::lazy {

Tensor Adjoint(const Tensor& x) { return Conj(Transpose(x, -1, -2)); }

namespace {

Tensor OnDiagonal(const Tensor& x) {
  const Dims dims{RowsOf(x.shape()), ColumnsOf(x.shape())};
  return Eq(Positions(dims, 0, x.device()), Positions(dims, 1, x.device()));
}

}  // namespace

Tensor DiagonalOf(const Tensor& x) {
  return Sum(Where(OnDiagonal(x), x, Constant(0, x.dtype())), {-2});
}

Tensor WithDiagonal(const Tensor& x, const Tensor& diagonal) {
  return Where(OnDiagonal(x), Unsqueeze(diagonal, -2), x);
}

Tensor IdentityLike(const Tensor& x) { return Eye(ColumnsOf(x.shape()), x.dtype(), x.device()); }

Tensor FirstColumns(const Tensor& x, int64_t count) {
  return ColumnsOf(x.shape()) == count ? x : Narrow(x, -1, 0, count);
}
Tensor FirstRows(const Tensor& x, int64_t count) {
  return RowsOf(x.shape()) == count ? x : Narrow(x, -2, 0, count);
}

Tensor TwiceSkew(const Tensor& x) { return x - Adjoint(x); }

Tensor RowsInOrder(const Tensor& x, const Tensor& order) {
  return Gather(x, -2, BroadcastTo(Unsqueeze(To(order, DType::kS64), -1), x.shape().dims()));
}

void CheckElements(std::string_view op, const Tensor& A) {
  const DType dtype = A.dtype();
  if (IsOfLapack(dtype)) return;
  if (IsFloat(dtype)) {
    ThrowRecordError(op, WrongType("Low precision dtypes not supported. Got ", A.shape()));
  }
  ThrowRecordError(
      op, WrongType("Expected a floating point or complex tensor as input. Got ", A.shape()));
}

void CheckOfMatrices(std::string_view op, const Tensor& A, std::string_view name) {
  if (A.rank() >= 2) return;
  ThrowRecordError(op, InvalidArgument("The input tensor ", name,
                                       " must have at least 2 dimensions, is ", A.shape()));
}

void CheckSquare(std::string_view op, const Tensor& A, std::string_view name) {
  CheckOfMatrices(op, A, name);
  if (RowsOf(A.shape()) == ColumnsOf(A.shape())) return;
  ThrowRecordError(op,
                   InvalidArgument(name, " must be batches of square matrices, but they are ",
                                   RowsOf(A.shape()), " by ", ColumnsOf(A.shape()), " matrices"));
}

void CheckSameElements(std::string_view op, const Tensor& A, const Tensor& B) {
  if (A.dtype() == B.dtype()) return;
  ThrowRecordError(op, WrongType("Expected A and B to have the same dtype, but found A ", A.shape(),
                                 " and B ", B.shape(), " instead"));
}

bool HoldsVectors(const Tensor& A, const Tensor& B) {
  return B.rank() + 1 == A.rank() &&
         SameDims(B.shape(), VectorShape(B.dtype(), A.shape(), RowsOf(A.shape())));
}

std::pair<Tensor, Tensor> WithOneBatch(std::string_view op, const Tensor& A, const Tensor& B) {
  const Shape a(A.dtype(), BatchOf(A.shape())), b(A.dtype(), BatchOf(B.shape()));
  if (SameDims(a, b)) return {A, B};
  const absl::StatusOr<Dims> batch = BroadcastDims(a, b);
  if (!batch.ok()) {
    ThrowRecordError(
        op, InvalidArgument("the batches of ", A.shape(), " and ", B.shape(), " do not broadcast"));
  }
  const auto stretched = [&](const Tensor& x) {
    Dims dims = *batch;
    dims.push_back(RowsOf(x.shape()));
    dims.push_back(ColumnsOf(x.shape()));
    return BroadcastTo(x, dims);
  };
  return {stretched(A), stretched(B)};
}

}  // namespace lazuli::lazy
