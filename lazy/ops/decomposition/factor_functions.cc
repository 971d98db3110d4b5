// Functions of Cholesky and LU factors: those of linalg, and those with PyTorch's older names.
#include <limits>

#include "lazy/ops/core/dims.h"
#include "lazy/ops/decomposition/check_info.h"
#include "lazy/ops/decomposition/factors.h"
#include "lazy/ops/decomposition/lapack.h"
#include "lazy/ops/decomposition/matrices.h"
#include "lazy/ops/elementwise/elementwise.h"
#include "lazy/tensor/function_scope.h"

namespace lazuli::lazy {
namespace {

// The factor, lower or upper, and info.
std::pair<Tensor, Tensor> CholeskyFactor(std::string_view op, const Tensor& A, bool upper) {
  CheckSquare(op, A);
  CheckElements(op, A);
  const Tensors f = RecordAll(CholeskyOp{upper}, {{A}});
  return {f[0], f[1]};
}

Tensor CheckedCholesky(std::string_view op, const Tensor& A, bool upper) {
  const auto [L, info] = CholeskyFactor(op, A, upper);
  return Checked(Algorithm::kCholesky, info, L);
}

void CheckPivoting(std::string_view op, bool pivot) {
  if (pivot) return;
  ThrowRecordError(op, InvalidArgument("LU without pivoting is not implemented on the CPU"));
}

Tensors LuFactors(std::string_view op, const Tensor& A, bool pivot) {
  CheckOfMatrices(op, A);
  CheckElements(op, A);
  CheckPivoting(op, pivot);
  return RecordAll(LuOp{}, {{A}});
}

void CheckPivots(std::string_view op, const Tensor& LU, const Tensor& pivots) {
  if (pivots.dtype() != DType::kS32) {
    ThrowRecordError(op,
                     InvalidArgument("pivots should be a Tensor of scalar type torch.int32. Got ",
                                     pivots.shape()));
  }
  const int64_t k = std::min(RowsOf(LU.shape()), ColumnsOf(LU.shape()));
  if (SameDims(pivots.shape(), VectorShape(DType::kS32, LU.shape(), k))) return;
  ThrowRecordError(op, InvalidArgument("Number of pivots per batch should be same as the dimension "
                                       "of the matrix, LU is ",
                                       LU.shape(), " and pivots are ", pivots.shape()));
}

struct Unpacked {
  Tensor P, L, U;
};

// P [m, m], of the dtype of the factors: row i of a matrix is row order[i] of its product with P.
Tensor PermutationMatrix(const Tensor& LU, const Tensor& pivots) {
  const int64_t m = RowsOf(LU.shape());
  if (m == 0) return FullConstant(MatrixShape(LU.shape(), 0, 0), 0, LU.device());
  const Tensor order = Record(PermutationOp{m}, pivots);
  return Transpose(OneHot(To(order, DType::kS64), m, LU.dtype()), -1, -2);
}

std::pair<Tensor, Tensor> Triangles(const Tensor& LU) {
  const int64_t k = std::min(RowsOf(LU.shape()), ColumnsOf(LU.shape()));
  const Tensor lower = Tril(FirstColumns(LU, k), -1);
  const Tensor unit = Eye(RowsOf(LU.shape()), k, LU.dtype(), LU.device());
  return {lower + unit, Triu(FirstRows(LU, k), 0)};
}

void CheckRightSide(std::string_view op, const Tensor& A, const Tensor& B, bool left) {
  CheckOfMatrices(op, B, "B");
  const Shape &a = A.shape(), &b = B.shape();
  if ((left ? RowsOf(b) : ColumnsOf(b)) == ColumnsOf(a)) return;
  ThrowRecordError(op, InvalidArgument("Incompatible shapes of A and B for the equation ",
                                       left ? "AX = B" : "XA = B", " (", RowsOf(a), "x",
                                       ColumnsOf(a), " and ", RowsOf(b), "x", ColumnsOf(b), ")"));
}

struct Solution {
  Tensor x, info;
};

// info is that of A, whose batch may be stretched to that of B.
Solution SolveWith(std::string_view op, const Tensor& A, const Tensor& B, bool left) {
  CheckSquare(op, A);
  CheckElements(op, A);
  CheckSameElements(op, A, B);
  const bool vector = B.rank() == 1 || HoldsVectors(A, B);
  if (vector && !left) {
    ThrowRecordError(op,
                     InvalidArgument("Vector broadcasting of the left hand side is not supported "
                                     "for left=False. In this case linalg.solve is equivalent to "
                                     "B / A.squeeze(-1)"));
  }
  const Tensor columns = vector ? Unsqueeze(B, -1) : B;
  CheckRightSide(op, A, columns, left);
  const auto [a, b] = WithOneBatch(op, A, columns);
  const Tensors solved = left
                             ? RecordAll(SolveOp{}, {{a, b}})
                             : RecordAll(SolveOp{}, {{Transpose(a, -1, -2), Transpose(b, -1, -2)}});
  const Tensor x = left ? solved[0] : Transpose(solved[0], -1, -2);
  return {vector ? Squeeze(x, -1) : x, solved[3]};
}

Solution Inverted(std::string_view op, const Tensor& A) {
  CheckSquare(op, A);
  CheckElements(op, A);
  return SolveWith(op, A, BroadcastTo(IdentityLike(A), A.shape().dims()), /*left=*/true);
}

}  // namespace

// --- Cholesky

Tensor LinalgCholesky(const Tensor& A, bool upper) {
  const FunctionScope function("linalg.cholesky");
  return CheckedCholesky("linalg.cholesky", A, upper);
}

std::pair<Tensor, Tensor> LinalgCholeskyEx(const Tensor& A, bool upper, bool check_errors) {
  const FunctionScope function("linalg.cholesky_ex");
  const auto [L, info] = CholeskyFactor("linalg.cholesky_ex", A, upper);
  return {check_errors ? Checked(Algorithm::kCholesky, info, L) : L, info};
}

Tensor Cholesky(const Tensor& A, bool upper) {
  const FunctionScope function("cholesky");
  return CheckedCholesky("cholesky", A, upper);
}

Tensor CholeskySolve(const Tensor& B, const Tensor& L, bool upper) {
  static constexpr char kOp[] = "cholesky_solve";
  const FunctionScope function(kOp);
  CheckOfMatrices(kOp, B, "b");
  CheckSquare(kOp, L, "u");
  CheckElements(kOp, L);
  CheckSameElements(kOp, L, B);
  CheckRightSide(kOp, L, B, /*left=*/true);
  const auto [factor, b] = WithOneBatch(kOp, L, B);
  const TriangularSolveOp first{true, upper, upper, false}, second{true, upper, !upper, false};
  return Record(second, factor, Record(first, factor, b));
}

Tensor CholeskyInverse(const Tensor& L, bool upper) {
  static constexpr char kOp[] = "cholesky_inverse";
  const FunctionScope function(kOp);
  CheckSquare(kOp, L);
  CheckElements(kOp, L);
  const Tensor inverse = CholeskySolve(BroadcastTo(IdentityLike(L), L.shape().dims()), L, upper);
  if (L.shape().num_elements() == 0) return inverse;
  return Checked(Algorithm::kInverse, FirstZero(DiagonalOf(L)), inverse);
}

// --- LU

std::pair<Tensor, Tensor> LinalgLuFactor(const Tensor& A, bool pivot) {
  static constexpr char kOp[] = "torch.linalg.lu_factor";
  const FunctionScope function(kOp);
  const Tensors f = LuFactors(kOp, A, pivot);
  return {Checked(Algorithm::kLu, f[2], f[0]), f[1]};
}

std::tuple<Tensor, Tensor, Tensor> LinalgLuFactorEx(const Tensor& A, bool pivot,
                                                    bool check_errors) {
  static constexpr char kOp[] = "torch.linalg.lu_factor_ex";
  const FunctionScope function(kOp);
  const Tensors f = LuFactors(kOp, A, pivot);
  return {check_errors ? Checked(Algorithm::kLu, f[2], f[0]) : f[0], f[1], f[2]};
}

std::tuple<Tensor, Tensor, Tensor> LinalgLu(const Tensor& A, bool pivot) {
  const Tensors f = LuFactors("linalg.lu", A, pivot);
  const auto [L, U] = Triangles(f[0]);
  return {PermutationMatrix(f[0], f[1]), L, U};
}

std::tuple<Tensor, Tensor, Tensor> LuUnpack(const Tensor& LU, const Tensor& pivots,
                                            bool unpack_data, bool unpack_pivots) {
  static constexpr char kOp[] = "lu_unpack";
  CheckOfMatrices(kOp, LU, "LU_data");
  CheckElements(kOp, LU);
  const Tensor none = FullConstant(Shape(LU.dtype(), {0}), 0, LU.device());
  if (unpack_pivots) CheckPivots(kOp, LU, pivots);
  const Tensor P = unpack_pivots ? PermutationMatrix(LU, pivots) : none;
  if (!unpack_data) return {P, none, none};
  const auto [L, U] = Triangles(LU);
  return {P, L, U};
}

Tensor LinalgLuSolve(const Tensor& LU, const Tensor& pivots, const Tensor& B, bool left,
                     bool adjoint) {
  static constexpr char kOp[] = "linalg.lu_solve";
  const FunctionScope function(kOp);
  CheckSquare(kOp, LU, "LU");
  CheckElements(kOp, LU);
  CheckSameElements(kOp, LU, B);
  CheckRightSide(kOp, LU, B, left);
  CheckPivots(kOp, LU, pivots);
  const auto [factors, b] = WithOneBatch(kOp, LU, B);
  const Shape exchanges_shape = VectorShape(DType::kS32, b.shape(), pivots.dim(pivots.rank() - 1));
  const Tensor exchanges = BroadcastTo(pivots, exchanges_shape.dims());
  if (left) return SolveFactored(factors, exchanges, b, adjoint);
  return Adjoint(SolveFactored(factors, exchanges, Adjoint(b), !adjoint));
}

Tensor LuSolve(const Tensor& b, const Tensor& LU, const Tensor& pivots) {
  return LinalgLuSolve(LU, pivots, b, /*left=*/true, /*adjoint=*/false);
}

// --- systems of equations

Tensor LinalgSolve(const Tensor& A, const Tensor& B, bool left) {
  const FunctionScope function("torch.linalg.solve");
  const auto [x, info] = SolveWith("linalg.solve", A, B, left);
  return Checked(Algorithm::kSolve, info, x);
}

std::pair<Tensor, Tensor> LinalgSolveEx(const Tensor& A, const Tensor& B, bool left,
                                        bool check_errors) {
  const FunctionScope function("torch.linalg.solve_ex");
  const auto [x, info] = SolveWith("linalg.solve", A, B, left);
  return {check_errors ? Checked(Algorithm::kSolve, info, x) : x, info};
}

Tensor LinalgInv(const Tensor& A) {
  const FunctionScope function("linalg.inv");
  const auto [x, info] = Inverted("linalg.inv", A);
  return Checked(Algorithm::kInverse, info, x);
}

std::pair<Tensor, Tensor> LinalgInvEx(const Tensor& A, bool check_errors) {
  const FunctionScope function("linalg.inv_ex");
  const auto [x, info] = Inverted("linalg.inv_ex", A);
  return {check_errors ? Checked(Algorithm::kInverse, info, x) : x, info};
}

Tensor Inverse(const Tensor& A) { return LinalgInv(A); }

Tensor LinalgSolveTriangular(const Tensor& A, const Tensor& B, bool upper, bool left,
                             bool unitriangular) {
  static constexpr char kOp[] = "linalg.solve_triangular";
  CheckSquare(kOp, A);
  CheckElements(kOp, A);
  CheckSameElements(kOp, A, B);
  CheckRightSide(kOp, A, B, left);
  const auto [a, b] = WithOneBatch(kOp, A, B);
  return Record(TriangularSolveOp{left, upper, /*adjoint=*/false, unitriangular}, a, b);
}

std::pair<Tensor, Tensor> TriangularSolve(const Tensor& b, const Tensor& A, bool upper,
                                          bool transpose, bool unitriangular) {
  static constexpr char kOp[] = "triangular_solve";
  CheckSquare(kOp, A);
  CheckElements(kOp, A);
  CheckSameElements(kOp, A, b);
  CheckRightSide(kOp, A, b, /*left=*/true);
  const auto [a, x] = WithOneBatch(kOp, A, b);
  const Tensor used = transpose ? Transpose(a, -1, -2) : a;
  const TriangularSolveOp op{true, upper != transpose, false, unitriangular};
  return {Record(op, used, x), Clone(a)};
}

Tensor LinalgTensorinv(const Tensor& A, int64_t ind) {
  static constexpr char kOp[] = "linalg.tensorinv";
  if (ind <= 0)
    ThrowRecordError(kOp, InvalidArgument("Expected a strictly positive integer for 'ind'"));
  const auto first = static_cast<std::size_t>(std::min(ind, A.rank()));
  const auto rows = A.shape().dims().first(first), columns = A.shape().dims().subspan(first);
  if (Count(rows) != Count(columns)) {
    ThrowRecordError(kOp, InvalidArgument("Expected A to satisfy the requirement "
                                          "prod(A.shape[ind:]) == prod(A.shape[:ind]), but got ",
                                          Count(columns), " != ", Count(rows)));
  }
  Dims dims(columns.begin(), columns.end());
  dims.insert(dims.end(), rows.begin(), rows.end());
  const FunctionScope function("inv");
  return Reshape(LinalgInv(Reshape(A, {Count(rows), Count(columns)})), dims);
}

Tensor LinalgTensorsolve(const Tensor& in, const Tensor& B, const std::optional<Dims>& dims) {
  static constexpr char kOp[] = "linalg.tensorsolve";
  Tensor A = in;
  if (dims) {  // they move behind the others, in this order
    Dims order, moved;
    for (int64_t d : *dims) moved.push_back(NormalizeDim(kOp, d, A.rank()));
    for (int64_t d = 0; d < A.rank(); ++d)
      if (std::find(moved.begin(), moved.end(), d) == moved.end()) order.push_back(d);
    order.insert(order.end(), moved.begin(), moved.end());
    if (static_cast<int64_t>(order.size()) != A.rank())
      ThrowRecordError(kOp, InvalidArgument("dims (", Join(*dims, ", "), ") has a dim twice"));
    A = Permute(A, order);
  }
  const auto first = static_cast<std::size_t>(std::min(B.rank(), A.rank()));
  const auto rows = A.shape().dims().first(first), columns = A.shape().dims().subspan(first);
  if (Count(rows) != Count(columns)) {
    ThrowRecordError(kOp, InvalidArgument("Expected self to satisfy the requirement "
                                          "prod(self.shape[other.ndim:]) == "
                                          "prod(self.shape[:other.ndim]), but got ",
                                          Count(columns), " != ", Count(rows)));
  }
  const int64_t n = Count(rows);
  if (B.shape().num_elements() != n) {
    ThrowRecordError(kOp, InvalidArgument("B ", B.shape(), " does not fit A ", in.shape()));
  }
  return Reshape(LinalgSolve(Reshape(A, {n, n}), Reshape(B, {n}), /*left=*/true), columns);
}

// --- determinants

Tensor LinalgDet(const Tensor& A) {
  CheckSquare("linalg.det", A);
  CheckElements("linalg.det", A);
  return RecordAll(DetOp{}, {{A}})[0];
}
Tensor Det(const Tensor& A) { return LinalgDet(A); }

std::pair<Tensor, Tensor> LinalgSlogdet(const Tensor& A) {
  CheckSquare("linalg.slogdet", A);
  CheckElements("linalg.slogdet", A);
  const Tensors both = RecordAll(SlogdetOp{}, {{A}});
  return {both[0], both[1]};
}
std::pair<Tensor, Tensor> Slogdet(const Tensor& A) { return LinalgSlogdet(A); }

Tensor Logdet(const Tensor& A) {
  CheckSquare("logdet", A);
  CheckElements("logdet", A);
  const auto [sign, log] = LinalgSlogdet(A);
  if (IsComplex(A.dtype())) return Log(sign) + To(log, sign.dtype());
  const Tensor negative = Eq(sign, Constant(-1, sign.dtype()));
  return Where(negative, Constant(std::numeric_limits<double>::quiet_NaN(), log.dtype()), log);
}

}  // namespace lazuli::lazy
