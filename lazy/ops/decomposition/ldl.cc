#include "lazy/ops/decomposition/ldl.h"

#include "ir/support/wrong_type.h"
#include "lazy/ops/decomposition/check_info.h"
#include "lazy/ops/decomposition/lapack.h"
#include "lazy/ops/decomposition/matrices.h"
#include "lazy/tensor/function_scope.h"

namespace lazuli::lazy {
namespace {

constexpr LapackRoutine kSytrf{"sytrf", "sytrf"}, kHetrf{"sytrf", "hetrf"};
constexpr LapackRoutine kSytrs{"sytrs", "sytrs"}, kHetrs{"sytrs", "hetrs"};

constexpr std::string_view kLower = "{uplo = 76 : ui8}";  // 'L'

Tensors LdlFactors(std::string_view op, const Tensor& A, bool hermitian) {
  CheckSquare(op, A);
  CheckElements(op, A);
  return RecordAll(LdlOp{hermitian}, {{A}});
}

}  // namespace

std::array<lowering::Op, 3> LdlOp::Lower(lowering::Builder& b, lowering::Op x) const {
  if (const absl::Status s = CheckMatrices(x.shape(), /*square=*/true); !s.ok())
    return {b.Error(s), b.Error(s), b.Error(s)};
  const Shape shape = x.shape(), info = InfoShape(shape);  // NOLINT: it moves as more is built
  const Shape pivots = VectorShape(DType::kS32, shape, RowsOf(shape));
  if (shape.num_elements() == 0) return {x, b.Full(pivots, 0), b.Full(info, 0)};
  const auto results = LapackCall(hermitian ? kHetrf : kSytrf, {{x}},
                                  {{shape}, {pivots, false}, {info, false}}, kLower);
  return {LowerTriangle(results[0]), results[1], results[2]};
}

lowering::Op LdlSolveOp::Lower(lowering::Builder& b, lowering::Op factors, lowering::Op pivots,
                               lowering::Op x) const {
  if (const absl::Status s = CheckMatrices(factors.shape(), /*square=*/true); !s.ok())
    return b.Error(s);
  const Shape &a = factors.shape(), xs = x.shape();
  if (xs.dtype() != a.dtype() || xs.rank() != a.rank() || BatchOf(xs) != BatchOf(a) ||
      RowsOf(xs) != RowsOf(a) || pivots.shape() != VectorShape(DType::kS32, a, RowsOf(a)))
    return b.Error(InvalidArgument("LD ", a, ", pivots ", pivots.shape(), " and B ", xs,
                                   " do not fit each other"));
  if (xs.num_elements() == 0) return x;
  return LapackCall(hermitian ? kHetrs : kSytrs, {{factors}, {pivots, false}, {x}}, {{xs}}, kLower,
                    /*aliased=*/2)[0];
}

std::tuple<Tensor, Tensor, Tensor> LinalgLdlFactorEx(const Tensor& A, bool hermitian,
                                                     bool check_errors) {
  static constexpr char kOp[] = "linalg.ldl_factor_ex";
  const FunctionScope function(kOp);
  const Tensors f = LdlFactors(kOp, A, hermitian);
  if (!check_errors) return {f[0], f[1], f[2]};
  const Tensors checked = Checked(Algorithm::kLdl, f[2], {{f[0], f[1]}});
  return {checked[0], checked[1], f[2]};
}

std::pair<Tensor, Tensor> LinalgLdlFactor(const Tensor& A, bool hermitian) {
  static constexpr char kOp[] = "linalg.ldl_factor";
  const FunctionScope function(kOp);
  const Tensors f = LdlFactors(kOp, A, hermitian);
  const Tensors checked = Checked(Algorithm::kLdl, f[2], {{f[0], f[1]}});
  return {checked[0], checked[1]};
}

Tensor LinalgLdlSolve(const Tensor& LD, const Tensor& pivots, const Tensor& B, bool hermitian) {
  static constexpr char kOp[] = "linalg.ldl_solve";
  const FunctionScope function(kOp);
  CheckSquare(kOp, LD, "LD");
  CheckElements(kOp, LD);
  CheckSameElements(kOp, LD, B);
  CheckOfMatrices(kOp, B, "B");
  if (pivots.dtype() != DType::kS32 ||
      !SameDims(pivots.shape(), VectorShape(DType::kS32, LD.shape(), RowsOf(LD.shape())))) {
    ThrowRecordError(kOp, InvalidArgument("Expected LD.shape[:-1] and pivots.shape to be the same "
                                          "and pivots of s32, but got LD ",
                                          LD.shape(), " and pivots ", pivots.shape()));
  }
  if (RowsOf(B.shape()) != RowsOf(LD.shape())) {
    ThrowRecordError(kOp, InvalidArgument("Incompatible shapes of LD ", LD.shape(), " and B ",
                                          B.shape(), ": other.shape[-2] and LD.shape[-2] differ"));
  }
  const auto [factors, b] = WithOneBatch(kOp, LD, B);
  const Shape exchanges = VectorShape(DType::kS32, b.shape(), RowsOf(LD.shape()));
  return Record(LdlSolveOp{hermitian}, factors, BroadcastTo(pivots, exchanges.dims()), b);
}

}  // namespace lazuli::lazy
