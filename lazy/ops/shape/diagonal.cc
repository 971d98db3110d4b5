// Diagonals and triangles of matrices: diag, tril, trace, and their indices.
#include <algorithm>

#include "lazy/ops/core/functions.h"
#include "lazy/tensor/function_scope.h"

namespace lazuli::lazy {
namespace {

// The part of a matrix, or of matrices, where `keep` of column, row + diagonal holds.
Tensor Triangle(std::string_view op, const Tensor& x, int64_t diagonal,
                Tensor (*keep)(const Operand&, const Operand&)) {
  if (x.rank() < 2) ThrowRecordError(op, InvalidArgument("takes a matrix, not ", x.shape()));
  const Dims dims{x.dim(x.rank() - 2), x.dim(x.rank() - 1)};
  const Tensor row = Positions(dims, 0, x.device()), column = Positions(dims, 1, x.device());
  return Where(keep(column, row + static_cast<double>(diagonal)), x, Constant(0, x.dtype()));
}

}  // namespace

Tensor Tril(const Tensor& x, int64_t diagonal) { return Triangle("tril", x, diagonal, Le); }
Tensor Triu(const Tensor& x, int64_t diagonal) { return Triangle("triu", x, diagonal, Ge); }

Tensor DiagEmbed(const Tensor& x, int64_t offset, int64_t dim1, int64_t dim2) {
  if (x.rank() == 0)
    ThrowRecordError("diag_embed", InvalidArgument("takes a tensor with a dim, not ", x.shape()));
  const int64_t a = NormalizeDim("diag_embed", dim1, x.rank() + 1);
  const int64_t b = NormalizeDim("diag_embed", dim2, x.rank() + 1);
  if (a == b) {
    ThrowRecordError(
        "diag_embed",
        InvalidArgument("diagonal dimensions cannot be identical: ", dim1, ", ", dim2));
  }
  const int64_t last = x.rank() - 1, n = x.dim(last) + std::abs(offset);
  // Rows [..., n, 1] and [..., 1, n] beside each other, of which the diagonal stays.
  Dims low(static_cast<std::size_t>(x.rank()), 0), high = low;
  const Dims none = low;
  (offset > 0 ? low : high)[static_cast<std::size_t>(last)] = std::abs(offset);
  const Tensor columns = Unsqueeze(PadZeros(x, low, high, none), -2);
  const Dims plane{n, n};
  const Tensor row = Positions(plane, 0, x.device()), column = Positions(plane, 1, x.device());
  const Tensor on_it = Eq(column, row + static_cast<double>(offset));
  const Tensor embedded = Where(on_it, columns, Constant(0, x.dtype()));
  Dims order;
  for (int64_t d = 0, next = 0; d <= x.rank(); ++d)
    order.push_back(d == a ? x.rank() - 1 : d == b ? x.rank() : next++);
  return Permute(embedded, order);
}

Tensor Diag(const Tensor& x, int64_t diagonal) {
  if (x.rank() == 1) return DiagEmbed(x, diagonal, -2, -1);
  if (x.rank() != 2)
    ThrowRecordError("diag", InvalidArgument("takes a rank of 1 or 2, not ", x.shape()));
  return Clone(DiagonalView(x, diagonal, 0, 1));
}
Tensor Diagflat(const Tensor& x, int64_t offset) {
  return DiagEmbed(Reshape(x, {-1}), offset, -2, -1);
}

namespace {

// How many elements of a matrix lie at or below the diagonal: row i has
// clamp(offset + 1 + i, 0, columns) of them.
int64_t CountBelow(int64_t rows, int64_t columns, int64_t offset) {
  const auto sum_up_to = [columns](int64_t k) {
    const int64_t rising = std::clamp<int64_t>(k, 0, columns);
    return rising * (rising + 1) / 2 + std::max<int64_t>(k - columns, 0) * columns;
  };
  return sum_up_to(offset + rows) - sum_up_to(offset);
}

// Rows and columns of the elements at or below a diagonal, or at or above it: [2, n].
Tensor TriangleIndices(FunctionName op, int64_t rows, int64_t columns, bool lower, int64_t offset,
                       std::optional<DType> dtype, backend::Device device) {
  if (rows < 0 || columns < 0)
    ThrowRecordError(
        op, InvalidArgument("row and col must not be negative, are ", rows, " and ", columns));
  const FunctionScope function(op);
  offset = std::clamp(offset, -rows, columns);
  // Columns, or rows, from here on have no elements of the triangle.
  if (lower) {
    columns = std::min(columns, rows + offset);
  } else {
    rows = std::min(rows, columns - offset);
  }
  const Tensor row = Reshape(Arange(rows, DType::kS64, device), {rows, 1});
  const Tensor column = Arange(columns, DType::kS64, device) - static_cast<double>(offset);
  const Tensor mask = lower ? Le(column, row) : Ge(column, row);
  const int64_t n = lower ? CountBelow(rows, columns, offset)
                          : rows * columns - CountBelow(rows, columns, offset - 1);
  if (n == 0) return FullConstant(Shape(dtype.value_or(DType::kS64), {2, 0}), 0, device);
  return To(Clone(Transpose(NonzeroStatic(mask, n, 0), 0, 1)), dtype.value_or(DType::kS64));
}

}  // namespace

Tensor TrilIndices(int64_t row, int64_t col, int64_t offset, std::optional<DType> dtype,
                   backend::Device device) {
  return TriangleIndices("tril_indices", row, col, /*lower=*/true, offset, dtype, device);
}
Tensor TriuIndices(int64_t row, int64_t col, int64_t offset, std::optional<DType> dtype,
                   backend::Device device) {
  return TriangleIndices("triu_indices", row, col, /*lower=*/false, offset, dtype, device);
}

Tensor TraceOf(const Tensor& x) {
  if (x.rank() != 2) ThrowRecordError("trace", InvalidArgument("takes a matrix, not ", x.shape()));
  return Sum(DiagonalView(x, 0, 0, 1));
}

}  // namespace lazuli::lazy
