// Ranks, condition numbers, pseudo-inverses (Moore and Penrose), and least squares by them.
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

double DefaultTolerance(const Tensor& A) {
  return EpsilonOf(A.dtype()) *
         static_cast<double>(std::max(RowsOf(A.shape()), ColumnsOf(A.shape())));
}

// Bounds below which a singular value counts as 0, absolute and relative to the largest one: one per
// matrix, or one for all.
struct Bounds {
  Tensor absolute, relative;
};

Bounds BoundsOf(const Tensor& A, std::optional<double> atol, std::optional<double> rtol) {
  const double absolute = atol.value_or(0);
  const double relative = rtol.value_or(absolute > 0 ? 0 : DefaultTolerance(A));
  const Shape number(hlo::PartType(A.dtype()));
  return {FullConstant(number, absolute, A.device()), FullConstant(number, relative, A.device())};
}

void CheckOperand(std::string_view op, const Tensor& A, bool hermitian) {
  CheckOfMatrices(op, A);
  CheckElements(op, A);
  if (hermitian) CheckSquare(op, A);
}

void CheckBound(std::string_view op, std::string_view name, const Tensor& tolerance) {
  if (!tolerance.defined() || !IsComplex(tolerance.dtype())) return;
  ThrowRecordError(
      op, WrongType(name, " tensor of complex type is not supported. Got ", tolerance.shape()));
}

Bounds BoundsOf(std::string_view op, const Tensor& A, const Tensor& atol, const Tensor& rtol) {
  CheckBound(op, "atol", atol);
  CheckBound(op, "rtol", rtol);
  const DType dtype = hlo::PartType(A.dtype());
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

Tensor PseudoInverse(const Tensor& in, const Bounds& bounds, bool hermitian) {
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
  return Record(PinvOp{}, in, inverse);
}

Tensor RankOf(const Tensor& A, const Bounds& bounds, bool hermitian) {
  const Shape& shape = A.shape();
  if (shape.num_elements() == 0)
    return FullConstant(Shape(DType::kS64, BatchOf(shape)), 0, A.device());
  const Tensor sizes =
      hermitian ? Abs(LinalgEigvalsh(Detach(A), "L")) : LinalgSvdvals(Detach(A), std::nullopt);
  return Sum(Counts(sizes, bounds), {-1});
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
  const Tensor first = -Matmul(Matmul(P_h, dy), P_h);
  const Tensor right = Matmul(g_h, Matmul(P, P_h));  // multiplied by (1 - A P) from the left
  const Tensor left = Matmul(Matmul(P_h, P), g_h);   // multiplied by (1 - P A) from the right
  const Tensor second = right - Matmul(A, Matmul(P, right));
  const Tensor third = left - Matmul(Matmul(left, P), A);
  return {first + second + third, Tensor()};
}

// --- pinv

Tensor LinalgPinv(const Tensor& A, double rcond, bool hermitian) {
  CheckOperand("linalg.pinv", A, hermitian);
  return PseudoInverse(A, BoundsOf(A, 0.0, rcond), hermitian);
}
Tensor LinalgPinv(const Tensor& A, const Tensor& rcond, bool hermitian) {
  CheckOperand("linalg.pinv", A, hermitian);
  const Tensor zero = FullConstant(Shape(hlo::PartType(A.dtype())), 0, A.device());
  return PseudoInverse(A, BoundsOf("linalg.pinv", A, zero, rcond), hermitian);
}
Tensor LinalgPinv(const Tensor& A, std::optional<double> atol, std::optional<double> rtol,
                  bool hermitian) {
  CheckOperand("linalg.pinv", A, hermitian);
  return PseudoInverse(A, BoundsOf(A, atol, rtol), hermitian);
}
Tensor LinalgPinv(const Tensor& A, const Tensor& atol, const Tensor& rtol, bool hermitian) {
  CheckOperand("linalg.pinv", A, hermitian);
  return PseudoInverse(A, BoundsOf("linalg.pinv", A, atol, rtol), hermitian);
}
Tensor Pinverse(const Tensor& A, double rcond) { return LinalgPinv(A, rcond, false); }

// --- matrix_rank

Tensor LinalgMatrixRank(const Tensor& A, double tol, bool hermitian) {
  CheckOperand("linalg.matrix_rank", A, hermitian);
  return RankOf(A, BoundsOf(A, tol, 0.0), hermitian);
}
Tensor LinalgMatrixRank(const Tensor& A, const Tensor& tol, bool hermitian) {
  CheckOperand("linalg.matrix_rank", A, hermitian);
  const Tensor zero = FullConstant(Shape(hlo::PartType(A.dtype())), 0, A.device());
  return RankOf(A, BoundsOf("linalg.matrix_rank", A, tol, zero), hermitian);
}
Tensor LinalgMatrixRank(const Tensor& A, std::optional<double> atol, std::optional<double> rtol,
                        bool hermitian) {
  CheckOperand("linalg.matrix_rank", A, hermitian);
  return RankOf(A, BoundsOf(A, atol, rtol), hermitian);
}
Tensor LinalgMatrixRank(const Tensor& A, const Tensor& atol, const Tensor& rtol, bool hermitian) {
  CheckOperand("linalg.matrix_rank", A, hermitian);
  return RankOf(A, BoundsOf("linalg.matrix_rank", A, atol, rtol), hermitian);
}

// --- cond

namespace {

// The condition numbers of matrices without elements.
Tensor NoneToCompare(const Tensor& A) {
  return FullConstant(Shape(hlo::PartType(A.dtype()), BatchOf(A.shape())), 0, A.device());
}

// The norm of A times that of its inverse; infinite if A is singular.
template <class F>
Tensor ByInverse(const Tensor& A, F&& norm) {
  CheckSquare("linalg.cond", A);
  if (A.shape().num_elements() == 0) return NoneToCompare(A);
  const auto [inverse, info] = LinalgInvEx(A);
  const Tensor product = norm(A) * norm(inverse);
  const Tensor singular = Ne(info, Constant(0, DType::kS32));
  return Where(singular, Constant(std::numeric_limits<double>::infinity(), product.dtype()),
               product);
}

}  // namespace

Tensor LinalgCond(const Tensor& A, std::optional<double> p) {
  CheckOperand("linalg.cond", A, /*hermitian=*/false);
  if (!p || std::abs(*p) == 2) {
    if (A.shape().num_elements() == 0) return NoneToCompare(A);
    const Tensor S = LinalgSvdvals(A, std::nullopt);
    const Tensor largest = Select(S, -1, 0), smallest = Select(S, -1, S.dim(S.rank() - 1) - 1);
    return p && *p < 0 ? smallest / largest : largest / smallest;
  }
  return ByInverse(A, [&](const Tensor& x) { return LinalgMatrixNorm(x, *p); });
}
Tensor LinalgCond(const Tensor& A, std::string_view p) {
  CheckOperand("linalg.cond", A, /*hermitian=*/false);
  return ByInverse(A, [&](const Tensor& x) { return LinalgMatrixNorm(x, p); });
}

// --- least squares

namespace {

struct LstsqDriver {
  bool known, ranks, values, residuals;
};
LstsqDriver DriverOf(const std::string& name) {
  if (name == "gels") return {true, false, false, true};
  if (name == "gelsy") return {true, true, false, false};
  if (name == "gelsd" || name == "gelss") return {true, true, true, true};
  return {false, false, false, false};
}

// Where R of a matrix, or of its adjoint if it is wide, has a 0 on its diagonal: an info.
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

constexpr char kLstsq[] = "torch.linalg.lstsq";

// Returns whether B holds vectors.
bool CheckLstsq(const Tensor& A, const Tensor& B, const LstsqDriver& by) {
  CheckOfMatrices(kLstsq, A, "input");
  CheckElements(kLstsq, A);
  CheckSameElements(kLstsq, A, B);
  if (!by.known) {
    ThrowRecordError(kLstsq,
                     InvalidArgument("parameter `driver` should be one of (gels, gelsy, gelsd, "
                                     "gelss)"));
  }
  const Shape& a = A.shape();
  if (HoldsVectors(A, B)) return true;
  CheckOfMatrices(kLstsq, B, "other");
  if (RowsOf(B.shape()) != RowsOf(a)) {
    ThrowRecordError(kLstsq,
                     InvalidArgument("input.size(-2) should match other.size(-2), input is ", a,
                                     " and other ", B.shape()));
  }
  return false;
}

}  // namespace

std::tuple<Tensor, Tensor, Tensor, Tensor> LinalgLstsq(const Tensor& A, const Tensor& B,
                                                       std::optional<double> rcond,
                                                       const std::optional<std::string>& driver) {
  const FunctionScope function(kLstsq);
  const LstsqDriver by = DriverOf(driver.value_or("gelsy"));
  const bool vector = CheckLstsq(A, B, by);
  const auto [matrices, sides] = WithOneBatch(kLstsq, A, vector ? Unsqueeze(B, -1) : B);
  const double tolerance = rcond.value_or(DefaultTolerance(A));
  Tensor X = Matmul(LinalgPinv(matrices, tolerance, false), sides);
  if (!by.ranks && X.shape().num_elements() != 0)
    X = Checked(Algorithm::kLeastSquares, LacksRank(matrices), X);
  const Tensor none = FullConstant(Shape(hlo::PartType(A.dtype()), {0}), 0, A.device());
  Tensor residuals = Unaffected(none, X), rank = To(none, DType::kS64), values = none;
  if (by.ranks) rank = RankOf(matrices, BoundsOf(matrices, 0.0, tolerance), false);
  if (by.values) values = LinalgSvdvals(Detach(matrices), std::nullopt);
  const bool tall = RowsOf(A.shape()) > ColumnsOf(A.shape());
  if (by.residuals && tall && (!by.ranks || HasFullRank(rank, ColumnsOf(A.shape())))) {
    const Tensor left = Abs(Matmul(matrices, X) - sides);
    residuals = Sum(left * left, {-2});
  }
  return {vector ? Squeeze(X, -1) : X, residuals, rank, values};
}

}  // namespace lazuli::lazy
