// Functions of torch.linalg that are made of products, sums and orders, and norms.
#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <string_view>
#include <vector>

#include "ir/support/wrong_type.h"
#include "lazy/ops/core/dims.h"
#include "lazy/ops/core/functions.h"
#include "lazy/ops/core/wide.h"
#include "lazy/ops/elementwise/elementwise.h"

namespace lazuli::lazy {
namespace {

void CheckOfFloats(std::string_view op, const Tensor& x) {
  if (IsFloat(x.dtype()) || IsComplex(x.dtype())) return;
  ThrowRecordError(
      op, WrongType("expected a floating point or complex tensor as input, not ", x.shape()));
}

// A dtype that the elements are converted to must be complex where they are, and only there.
void CheckConversion(std::string_view op, const Tensor& x, std::optional<DType> dtype) {
  if (!dtype ||
      (IsComplex(*dtype) == IsComplex(x.dtype()) && (IsFloat(*dtype) || IsComplex(*dtype))))
    return;
  ThrowRecordError(op, WrongType("dtype should be ", IsComplex(x.dtype()) ? "complex" : "real",
                                 " as x, ", x.shape(), ", not ", DTypeText(*dtype)));
}

void CheckMatrices(std::string_view op, const Tensor& x) {
  if (x.rank() >= 2) return;
  ThrowRecordError(
      op, InvalidArgument("the input tensor must have at least 2 dimensions, is ", x.shape()));
}

std::pair<int64_t, int64_t> MatrixDims(std::string_view op, const Tensor& x,
                                       absl::Span<const int64_t> dims) {
  CheckMatrices(op, x);
  if (dims.empty()) return {x.rank() - 2, x.rank() - 1};
  if (dims.size() != 2)
    ThrowRecordError(op, InvalidArgument("dim must be a 2-tuple, not (", Join(dims, ", "), ")"));
  const int64_t rows = NormalizeDim(op, dims[0], x.rank());
  const int64_t columns = NormalizeDim(op, dims[1], x.rank());
  if (rows == columns)
    ThrowRecordError(op, InvalidArgument("dims must be different, are (", Join(dims, ", "), ")"));
  return {rows, columns};
}

// The splits that take the fewest multiplications, by dynamic programming: sizes are those of a
// chain of matrices [sizes[i], sizes[i + 1]].
class Chain {
 public:
  explicit Chain(absl::Span<const Tensor> matrices) : matrices_(matrices), n_(matrices.size()) {
    std::vector<double> cost(n_ * n_, 0);
    split_.resize(n_ * n_, 0);
    const auto size = [&](std::size_t i) {
      return static_cast<double>(i < n_ ? matrices_[i].dim(0) : matrices_[n_ - 1].dim(1));
    };
    for (std::size_t length = 1; length < n_; ++length) {
      for (std::size_t i = 0; i + length < n_; ++i) {
        const std::size_t j = i + length;
        double& best = cost[i * n_ + j];
        best = std::numeric_limits<double>::infinity();
        for (std::size_t k = i; k < j; ++k) {
          const double here =
              cost[i * n_ + k] + cost[(k + 1) * n_ + j] + size(i) * size(k + 1) * size(j + 1);
          if (here < best) best = here, split_[i * n_ + j] = k;
        }
      }
    }
  }
  Tensor Product() const { return Product(0, n_ - 1); }

 private:
  Tensor Product(std::size_t i, std::size_t j) const {
    if (i == j) return matrices_[i];
    const std::size_t k = split_[i * n_ + j];
    return Mm(Product(i, k), Product(k + 1, j));
  }

  absl::Span<const Tensor> matrices_;
  std::size_t n_;
  std::vector<std::size_t> split_;
};

// A function of the singular values [..., k] of the matrices of two dims.
template <class F>
Tensor OfSingularValues(const Tensor& A, int64_t rows, int64_t columns, bool keepdim,
                        std::optional<DType> dtype, F&& f) {
  Dims order;
  for (int64_t d = 0; d < A.rank(); ++d)
    if (d != rows && d != columns) order.push_back(d);
  order.push_back(rows);
  order.push_back(columns);
  const Tensor value = f(LinalgSvdvals(Permute(dtype ? To(A, *dtype) : A, order), std::nullopt));
  if (!keepdim) return value;
  return Unsqueeze(Unsqueeze(value, std::min(rows, columns)), std::max(rows, columns));
}

}  // namespace

Tensor LinalgCross(const Tensor& x, const Tensor& y, int64_t dim) {
  constexpr char kOp[] = "linalg.cross";
  if (x.rank() != y.rank()) {
    ThrowRecordError(kOp, InvalidArgument("inputs must have the same number of dimensions, are ",
                                          x.shape(), " and ", y.shape()));
  }
  const int64_t d = NormalizeDim(kOp, dim, x.rank());
  if (x.dim(d) != 3 || y.dim(d) != 3) {
    ThrowRecordError(
        kOp, InvalidArgument("inputs dimension ", dim, " must have length 3, they are ", x.shape(),
                             " and ", y.shape()));
  }
  return Cross(x, y, d);
}

Tensor LinalgDiagonalView(const Tensor& x, int64_t offset, int64_t dim1, int64_t dim2) {
  return DiagonalView(x, offset, dim1, dim2);
}

Tensor LinalgVecdot(const Tensor& x, const Tensor& y, int64_t dim) {
  constexpr char kOp[] = "linalg.vecdot";
  CheckOfFloats(kOp, x);
  if (x.dtype() != y.dtype()) {
    ThrowRecordError(
        kOp, WrongType("expected x and y of one dtype, not ", x.shape(), " and ", y.shape()));
  }
  const int64_t dims[] = {dim};
  return InWide(x, [&](const Tensor& wide) { return Sum(Conj(wide) * Wide(y), dims); });
}

Tensor LinalgVectorNorm(const Tensor& x, double ord, const std::optional<Dims>& dim, bool keepdim,
                        std::optional<DType> dtype) {
  constexpr char kOp[] = "linalg.vector_norm";
  CheckOfFloats(kOp, x);
  CheckConversion(kOp, x, dtype);
  const Dims dims = NormalizeDims(kOp, dim.value_or(Dims()), x.rank());
  const bool none = std::any_of(dims.begin(), dims.end(), [&](int64_t d) { return x.dim(d) == 0; });
  if (none && (ord < 0 || std::isinf(ord))) {
    ThrowRecordError(kOp,
                     InvalidArgument("cannot compute the ", ord, " norm on the dims of ", x.shape(),
                                     ", some of which have no elements: it has no identity"));
  }
  return Norm(x, ord, dims, keepdim, dtype);
}

Tensor LinalgMatrixNorm(const Tensor& A, double ord, absl::Span<const int64_t> dim, bool keepdim,
                        std::optional<DType> dtype) {
  constexpr char kOp[] = "linalg.matrix_norm";
  CheckOfFloats(kOp, A);
  const auto [rows, columns] = MatrixDims(kOp, A, dim);
  if (std::abs(ord) == 2) {
    return OfSingularValues(A, rows, columns, keepdim, dtype, [&](const Tensor& S) {
      return ord > 0 ? Amax(S, {-1}) : Amin(S, {-1});
    });
  }
  if (std::abs(ord) != 1 && !std::isinf(ord))
    ThrowRecordError(kOp, InvalidArgument("order ", ord, " not supported"));
  const auto [summed, ordered] =
      std::abs(ord) == 1 ? std::pair(rows, columns) : std::pair(columns, rows);
  const Tensor sums = LinalgVectorNorm(A, 1, Dims{summed}, /*keepdim=*/true, dtype);
  const Dims last{ordered}, both{std::min(rows, columns), std::max(rows, columns)};
  const Tensor norm = ord > 0 ? Amax(sums, last, /*keepdim=*/true) : Amin(sums, last, true);
  return keepdim ? norm : Squeeze(Squeeze(norm, both[1]), both[0]);
}

Tensor LinalgMatrixNorm(const Tensor& A, std::string_view ord, absl::Span<const int64_t> dim,
                        bool keepdim, std::optional<DType> dtype) {
  constexpr char kOp[] = "linalg.matrix_norm";
  CheckOfFloats(kOp, A);
  const auto [rows, columns] = MatrixDims(kOp, A, dim);
  if (ord == "nuc") {
    return OfSingularValues(A, rows, columns, keepdim, dtype,
                            [](const Tensor& S) { return Sum(S, {-1}); });
  }
  if (ord != "fro") ThrowRecordError(kOp, InvalidArgument("order ", ord, " not supported"));
  return LinalgVectorNorm(A, 2, Dims{rows, columns}, keepdim, dtype);
}

namespace {
void CheckNormDims(const Tensor& x, const std::optional<Dims>& dim) {
  constexpr char kOp[] = "linalg.norm";
  if (dim && dim->size() != 1 && dim->size() != 2) {
    ThrowRecordError(kOp, InvalidArgument("if dim is specified, it must be of length 1 or 2, is (",
                                          Join(*dim, ", "), ")"));
  }
  if (!dim && x.rank() != 1 && x.rank() != 2) {
    ThrowRecordError(kOp, InvalidArgument("if dim is not specified but ord is, the input must be "
                                          "1D or 2D, is ",
                                          x.shape()));
  }
}
}  // namespace

Tensor LinalgNorm(const Tensor& A, std::optional<double> ord, const std::optional<Dims>& dim,
                  bool keepdim, std::optional<DType> dtype) {
  if (ord) CheckNormDims(A, dim);
  const bool is_matrix = ord && (dim ? dim->size() == 2 : A.rank() == 2);
  if (is_matrix) return LinalgMatrixNorm(A, *ord, dim.value_or(Dims()), keepdim, dtype);
  return LinalgVectorNorm(A, ord.value_or(2), dim, keepdim, dtype);
}
Tensor LinalgNorm(const Tensor& A, std::string_view ord, const std::optional<Dims>& dim,
                  bool keepdim, std::optional<DType> dtype) {
  CheckNormDims(A, dim);
  return LinalgMatrixNorm(A, ord, dim.value_or(Dims()), keepdim, dtype);
}

Tensor LinalgMultiDot(absl::Span<const Tensor> tensors) {
  constexpr char kOp[] = "linalg.multi_dot";
  const std::size_t n = tensors.size();
  if (n < 2) ThrowRecordError(kOp, InvalidArgument("expected at least 2 tensors but got ", n));
  Tensors matrices(tensors.begin(), tensors.end());
  for (std::size_t i = 0; i < n; ++i) {
    const bool end = i == 0 || i + 1 == n;
    if (matrices[i].rank() != 2 && !(end && matrices[i].rank() == 1)) {
      ThrowRecordError(kOp, InvalidArgument("tensor ", i, " must be ", end ? "1D or 2D" : "2D",
                                            " but got ", matrices[i].shape()));
    }
  }
  const bool row = matrices.front().rank() == 1, column = matrices.back().rank() == 1;
  if (row) matrices.front() = Unsqueeze(matrices.front(), 0);
  if (column) matrices.back() = Unsqueeze(matrices.back(), 1);
  for (std::size_t i = 0; i + 1 < n; ++i) {
    if (matrices[i].dim(1) != matrices[i + 1].dim(0)) {
      ThrowRecordError(
          kOp, InvalidArgument("tensors ", i, " and ", i + 1, " with shapes ", tensors[i].shape(),
                               " and ", tensors[i + 1].shape(), " cannot be multiplied"));
    }
  }
  Tensor product = Chain(matrices).Product();
  if (column) product = Squeeze(product, 1);
  return row ? Squeeze(product, 0) : product;
}

Tensor LinalgMatrixPower(const Tensor& A, int64_t n) {
  constexpr char kOp[] = "linalg.matrix_power";
  CheckOfFloats(kOp, A);
  CheckMatrices(kOp, A);
  const int64_t size = A.dim(A.rank() - 1);
  if (A.dim(A.rank() - 2) != size) {
    ThrowRecordError(kOp, InvalidArgument("A must be batches of square matrices, is ", A.shape()));
  }
  if (n < 0) return n == -1 ? LinalgInv(A) : LinalgMatrixPower(LinalgInv(A), -n);
  if (n == 0) {  // which has a gradient, 0
    const Tensor never = FullConstant(Shape(DType::kPred), 0, A.device());
    return Where(never, A, BroadcastTo(Eye(size, A.dtype(), A.device()), A.shape().dims()));
  }
  Tensor power = A, result;
  for (int64_t left = n; left > 0; left >>= 1) {
    if ((left & 1) != 0) result = result.defined() ? Matmul(result, power) : power;
    if (left > 1) power = Matmul(power, power);
  }
  return n == 1 ? Clone(result) : result;
}

Tensor LinalgVander(const Tensor& in, std::optional<int64_t> N) {
  constexpr char kOp[] = "linalg.vander";
  const Tensor x = WithDim(in);
  if (x.dtype() == DType::kPred)
    ThrowRecordError(kOp, InvalidArgument("takes numbers, not ", x.shape()));
  const int64_t n = N.value_or(x.dim(x.rank() - 1));
  if (n <= 1) ThrowRecordError(kOp, InvalidArgument("N must be greater than 1, is ", n));
  Dims dims = DimsOf(x.shape());
  dims.push_back(n - 1);
  const Tensor factors = BroadcastTo(Unsqueeze(x, -1), dims);
  dims.back() = 1;
  const Tensor ones = FullConstant(Shape(x.dtype(), dims), 1, x.device());
  const Tensor parts[] = {ones, factors};
  return Cumprod(Cat(parts, -1), -1, std::nullopt);
}

}  // namespace lazuli::lazy
