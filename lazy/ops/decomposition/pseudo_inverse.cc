// Ranks, conditions, the inverse of Moore and Penrose, and what it solves.
#include "lazy/ops/decomposition/pseudo_inverse.h"

#include <cmath>
#include <limits>

#include "ir/support/wrong_type.h"
#include "lazy/ops/core/dims.h"
#include "lazy/ops/core/gradient_ops.h"
#include "lazy/ops/decomposition/check_info.h"
#include "lazy/ops/decomposition/lapack.h"
#include "lazy/ops/decomposition/matrices.h"
#include "lazy/tensor/function_scope.h"

namespace lazuli::lazy {
namespace {

double Epsilon(DType dtype) {
  return RealType(dtype) == DType::kF32 ? std::numeric_limits<float>::epsilon()
                                        : std::numeric_limits<double>::epsilon();
}

double DefaultTolerance(const Tensor& A) {
  return Epsilon(A.dtype()) *
         static_cast<double>(std::max(RowsOf(A.shape()), ColumnsOf(A.shape())));
}

// Bounds for each matrix [..., or none], below which a singular value counts as 0: absolute, and
// relative to the largest one.
struct Bounds {
  Tensor absolute, relative;
};

Bounds BoundsOf(const Tensor& A, std::optional<double> atol, std::optional<double> rtol) {
  const double absolute = atol.value_or(0);
  const double relative = rtol.value_or(absolute > 0 ? 0 : DefaultTolerance(A));
  const Shape number(RealType(A.dtype()));
  return {FullConstant(number, absolute, A.device()), FullConstant(number, relative, A.device())};
}

void CheckBound(std::string_view op, std::string_view name, const Tensor& tolerance) {
  if (!tolerance.defined() || !IsComplex(tolerance.dtype())) return;
  ThrowRecordError(
      op, WrongType(name, " tensor of complex type is not supported. Got ", tolerance.shape()));
}

Bounds BoundsOf(std::string_view op, const Tensor& A, const Tensor& atol, const Tensor& rtol) {
  CheckBound(op, "atol", atol);
  CheckBound(op, "rtol", rtol);
  const DType dtype = RealType(A.dtype());
  const Shape number(dtype);
  const Tensor absolute = atol.defined() ? To(atol, dtype) : FullConstant(number, 0, A.device());
  if (rtol.defined()) return {absolute, To(rtol, dtype)};
  const Tensor none = Gt(absolute, Constant(0, dtype));
  return {absolute, Where(none, Constant(0, dtype), Constant(DefaultTolerance(A), dtype))};
}

// Where the sizes of values [..., k] are above the bounds.
Tensor Counts(const Tensor& sizes, const Bounds& bounds) {
  const Tensor largest = Amax(sizes, {-1}, /*keepdim=*/true);
  const Tensor bound =
      Maximum(Unsqueeze(bounds.absolute, -1), Unsqueeze(bounds.relative, -1) * largest);
  return Gt(sizes, bound);
}

Tensor Inverses(const Tensor& values, const Tensor& counts) {
  const Tensor safe = Where(counts, values, Constant(1, values.dtype()));
  return Where(counts, Reciprocal(safe), Constant(0, values.dtype()));
}

Tensor PseudoInverse(std::string_view op, const Tensor& in, const Bounds& bounds, bool hermitian) {
  const Tensor A = Detach(in);
  const Shape& shape = A.shape();
  if (shape.num_elements() == 0) {
    const Tensor zeros =
        FullConstant(MatrixShape(shape, ColumnsOf(shape), RowsOf(shape)), 0, A.device());
    return Record(PinvOp{}, in, zeros);
  }
  Tensor inverse;
  if (hermitian) {
    const auto [values, V] = LinalgEigh(A, "L");
    const Tensor inverses = Inverses(values, Counts(Abs(values), bounds));
    inverse = Matmul(V * Unsqueeze(To(inverses, V.dtype()), -2), Adjoint(V));
  } else {
    const auto [U, S, Vh] = LinalgSvd(A, /*full_matrices=*/false, std::nullopt);
    const Tensor inverses = Inverses(S, Counts(S, bounds));
    inverse = Matmul(Adjoint(Vh) * Unsqueeze(To(inverses, U.dtype()), -2), Adjoint(U));
  }
  (void)op;
  return Record(PinvOp{}, in, inverse);
}

void CheckOfPinv(const Tensor& A, bool hermitian) {
  constexpr char kOp[] = "linalg.pinv";
  CheckOfMatrices(kOp, A);
  CheckElements(kOp, A);
  if (hermitian) CheckSquare(kOp, A);
}

Tensor RankOf(const Tensor& A, const Bounds& bounds, bool hermitian) {
  const Shape& shape = A.shape();
  if (shape.num_elements() == 0)
    return FullConstant(Shape(DType::kS64, BatchOf(shape)), 0, A.device());
  const Tensor sizes =
      hermitian ? Abs(LinalgEigvalsh(Detach(A), "L")) : LinalgSvdvals(Detach(A), std::nullopt);
  return Sum(Counts(sizes, bounds), {-1});
}

void CheckOfRank(const Tensor& A, bool hermitian) {
  constexpr char kOp[] = "linalg.matrix_rank";
  CheckOfMatrices(kOp, A);
  CheckElements(kOp, A);
  if (hermitian) CheckSquare(kOp, A);
}

}  // namespace

lowering::Op PinvOp::Lower(lowering::Builder& b, lowering::Op a, lowering::Op inverse) const {
  const Shape &as = a.shape(), &is = inverse.shape();
  if (as.rank() < 2 || is != MatrixShape(as, ColumnsOf(as), RowsOf(as)))
    return b.Error(InvalidArgument("A ", as, " and inverse ", is, " do not fit each other"));
  return inverse;
}

// Golub and Pereyra 1973: dP = -P dA P + P P^H dA^H (1 - A P) + (1 - P A) dA^H P^H P.
Tensors PinvOp::Vjp(const Saved& s, const Tensor& dy) const {
  const Tensor A = s.x(), P = s.y();
  const Tensor P_h = Adjoint(P), g_h = Adjoint(dy);
  const auto times = [](const Tensor& x, const Tensor& y) { return Matmul(x, y); };
  const Tensor first = -times(times(P_h, dy), P_h);
  const Tensor right = times(g_h, times(P, P_h));  // of (1 - A P) from the left
  const Tensor left = times(times(P_h, P), g_h);   // of (1 - P A) from the right
  const Tensor second = right - times(A, times(P, right));
  const Tensor third = left - times(times(left, P), A);
  return {first + second + third, Tensor()};
}

// --- pinv

Tensor LinalgPinv(const Tensor& A, double rcond, bool hermitian) {
  CheckOfPinv(A, hermitian);
  return PseudoInverse("linalg.pinv", A, BoundsOf(A, 0.0, rcond), hermitian);
}
Tensor LinalgPinv(const Tensor& A, const Tensor& rcond, bool hermitian) {
  CheckOfPinv(A, hermitian);
  const Tensor zero = FullConstant(Shape(RealType(A.dtype())), 0, A.device());
  return PseudoInverse("linalg.pinv", A, BoundsOf("linalg.pinv", A, zero, rcond), hermitian);
}
Tensor LinalgPinv(const Tensor& A, std::optional<double> atol, std::optional<double> rtol,
                  bool hermitian) {
  CheckOfPinv(A, hermitian);
  return PseudoInverse("linalg.pinv", A, BoundsOf(A, atol, rtol), hermitian);
}
Tensor LinalgPinv(const Tensor& A, const Tensor& atol, const Tensor& rtol, bool hermitian) {
  CheckOfPinv(A, hermitian);
  return PseudoInverse("linalg.pinv", A, BoundsOf("linalg.pinv", A, atol, rtol), hermitian);
}
Tensor Pinverse(const Tensor& A, double rcond) { return LinalgPinv(A, rcond, false); }

// --- matrix_rank

Tensor LinalgMatrixRank(const Tensor& A, double tol, bool hermitian) {
  CheckOfRank(A, hermitian);
  return RankOf(A, BoundsOf(A, tol, 0.0), hermitian);
}
Tensor LinalgMatrixRank(const Tensor& A, const Tensor& tol, bool hermitian) {
  CheckOfRank(A, hermitian);
  const Tensor zero = FullConstant(Shape(RealType(A.dtype())), 0, A.device());
  return RankOf(A, BoundsOf("linalg.matrix_rank", A, tol, zero), hermitian);
}
Tensor LinalgMatrixRank(const Tensor& A, std::optional<double> atol, std::optional<double> rtol,
                        bool hermitian) {
  CheckOfRank(A, hermitian);
  return RankOf(A, BoundsOf(A, atol, rtol), hermitian);
}
Tensor LinalgMatrixRank(const Tensor& A, const Tensor& atol, const Tensor& rtol, bool hermitian) {
  CheckOfRank(A, hermitian);
  return RankOf(A, BoundsOf("linalg.matrix_rank", A, atol, rtol), hermitian);
}

// --- cond

namespace {

void CheckOfCond(const Tensor& A) {
  CheckOfMatrices("linalg.cond", A);
  CheckElements("linalg.cond", A);
}

// The norm of A times that of its inverse, infinite of a singular one.
template <class F>
Tensor ByInverse(const Tensor& A, F&& norm) {
  CheckSquare("linalg.cond", A);
  if (A.shape().num_elements() == 0)
    return FullConstant(Shape(RealType(A.dtype()), BatchOf(A.shape())), 0, A.device());
  const auto [inverse, info] = LinalgInvEx(A);
  const Tensor product = norm(A) * norm(inverse);
  const Tensor singular = Ne(info, Constant(0, DType::kS32));
  return Where(singular, Constant(std::numeric_limits<double>::infinity(), product.dtype()),
               product);
}

}  // namespace

Tensor LinalgCond(const Tensor& A, std::optional<double> p) {
  CheckOfCond(A);
  if (!p || std::abs(*p) == 2) {
    if (A.shape().num_elements() == 0)
      return FullConstant(Shape(RealType(A.dtype()), BatchOf(A.shape())), 0, A.device());
    const Tensor S = LinalgSvdvals(A, std::nullopt);
    const Tensor largest = Select(S, -1, 0), smallest = Select(S, -1, S.dim(S.rank() - 1) - 1);
    return p && *p < 0 ? smallest / largest : largest / smallest;
  }
  return ByInverse(A, [&](const Tensor& x) { return LinalgMatrixNorm(x, *p); });
}
Tensor LinalgCond(const Tensor& A, std::string_view p) {
  CheckOfCond(A);
  return ByInverse(A, [&](const Tensor& x) { return LinalgMatrixNorm(x, p); });
}

// --- least squares

namespace {

struct Driver {
  bool known, ranks, values, residuals;
};
Driver DriverOf(const std::string& name) {
  if (name == "gels") return {true, false, false, true};
  if (name == "gelsy") return {true, true, false, false};
  if (name == "gelsd" || name == "gelss") return {true, true, true, true};
  return {false, false, false, false};
}

// Where the triangle of a matrix, or of its adjoint, has a 0 on its diagonal.
Tensor LacksRank(const Tensor& A) {
  const bool wide = RowsOf(A.shape()) < ColumnsOf(A.shape());
  const Tensor tall = wide ? Adjoint(Detach(A)) : Detach(A);
  return FirstZero(DiagonalOf(LinalgQr(tall, "r").second));
}

// Read now, for the size of a result depends on it.
bool HasFullRank(const Tensor& rank, int64_t columns) {
  Add(Counter::kSyncForSize);
  ThrowIfError(GetEngine().Sync(Context::Current(), /*wait=*/false, SyncReason::kSize));
  const Literal read = ToLiteral(rank);
  for (int64_t i = 0; i < rank.shape().num_elements(); ++i)
    if (read.data<int64_t>()[static_cast<std::size_t>(i)] != columns) return false;
  return true;
}

}  // namespace

std::tuple<Tensor, Tensor, Tensor, Tensor> LinalgLstsq(const Tensor& A, const Tensor& B,
                                                       std::optional<double> rcond,
                                                       const std::optional<std::string>& driver) {
  static constexpr char kOp[] = "torch.linalg.lstsq";
  const FunctionScope function(kOp);
  const Driver by = DriverOf(driver.value_or("gelsy"));
  CheckOfMatrices(kOp, A, "input");
  CheckElements(kOp, A);
  CheckSameElements(kOp, A, B);
  if (!by.known) {
    ThrowRecordError(kOp,
                     InvalidArgument("parameter `driver` should be one of (gels, gelsy, gelsd, "
                                     "gelss)"));
  }
  const Shape& a = A.shape();
  const bool vector =
      B.rank() + 1 == A.rank() && SameDims(B.shape(), VectorShape(B.dtype(), a, RowsOf(a)));
  const Tensor columns = vector ? Unsqueeze(B, -1) : B;
  CheckOfMatrices(kOp, columns, "other");
  if (RowsOf(columns.shape()) != RowsOf(a)) {
    ThrowRecordError(kOp, InvalidArgument("input.size(-2) should match other.size(-2), input is ",
                                          a, " and other ", B.shape()));
  }
  const auto [matrices, sides] = WithOneBatch(kOp, A, columns);
  const double tolerance = rcond.value_or(DefaultTolerance(A));
  Tensor X = Matmul(LinalgPinv(matrices, tolerance, false), sides);
  if (!by.ranks && X.shape().num_elements() != 0)
    X = Checked(Algorithm::kLeastSquares, LacksRank(matrices), X);
  const Tensor none = FullConstant(Shape(RealType(A.dtype()), {0}), 0, A.device());
  Tensor residuals = Unaffected(none, X), rank = To(none, DType::kS64), values = none;
  if (by.ranks) rank = RankOf(matrices, BoundsOf(matrices, 0.0, tolerance), false);
  if (by.values) values = LinalgSvdvals(Detach(matrices), std::nullopt);
  const bool tall = RowsOf(a) > ColumnsOf(a);
  if (by.residuals && tall && (!by.ranks || HasFullRank(rank, ColumnsOf(a)))) {
    const Tensor left = Abs(Matmul(matrices, X) - sides);
    residuals = Sum(left * left, {-2});
  }
  return {vector ? Squeeze(X, -1) : X, residuals, rank, values};
}

}  // namespace lazuli::lazy
