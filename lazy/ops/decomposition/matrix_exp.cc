// By scaling and squaring (Higham 2005) with the polynomial of Taylor, which needs no inverse: that of
// degree 16 takes six products (Paterson and Stockmeyer 1973).
#include "lazy/ops/decomposition/matrix_exp.h"

#include <array>
#include <cmath>

#include "lazy/ops/decomposition/lapack.h"
#include "lazy/ops/decomposition/matrices.h"
#include "lazy/ops/elementwise/loops.h"

namespace lazuli::lazy {
namespace {

using hlo::ComparisonDirection;
using lowering::Opcode;

constexpr int kDegree = 16, kBlock = 4;
constexpr double kMostSquares = 1100;  // beyond the exponents of f64

// The norm up to which the rest of the series does not count beside rounding.
double LargestNorm(DType dtype) { return hlo::PartType(dtype) == DType::kF32 ? 2.0 : 0.78; }

lowering::Op Product(lowering::Op x, lowering::Op y) {
  hlo::DotAttrs attrs;
  const int64_t batch = x.rank() - 2;
  for (int64_t i = 0; i < batch; ++i) {
    attrs.lhs_batch_dims.push_back(i);
    attrs.rhs_batch_dims.push_back(i);
  }
  attrs.lhs_contracting_dims = {batch + 1};
  attrs.rhs_contracting_dims = {batch};
  return x.builder()->Dot(x, y, std::move(attrs));
}

// A number per matrix, for all of its elements.
lowering::Op ForEachMatrix(lowering::Op number, const Shape& matrices) {
  Dims dims;
  for (int64_t d = 0; d + 2 < matrices.rank(); ++d) dims.push_back(d);
  return number.builder()->Broadcast(number, matrices.dims(), dims);
}

// How many times each matrix is halved, by its 1-norm.
lowering::Op Halvings(lowering::Op x) {
  lowering::Builder& b = *x.builder();
  const lowering::Op sums = b.Reduce(Opcode::kAdd, b.Unary(Opcode::kAbs, x), {x.rank() - 2});
  const lowering::Op norm = b.Reduce(Opcode::kMaximum, sums, {sums.rank() - 1});
  const Shape shape = norm.shape();  // NOLINT: a copy, for the original moves as more is built
  const lowering::Op ratio = b.Times(norm, b.Full(shape, 1 / LargestNorm(x.dtype())));
  const lowering::Op twos = b.Times(b.Unary(Opcode::kLog, ratio), b.Full(shape, 1 / std::log(2.0)));
  const lowering::Op whole = b.Unary(Opcode::kCeil, twos);
  const lowering::Op finite = b.Unary(Opcode::kIsFinite, whole);
  return b.Clamp(b.Scalar(shape.dtype(), 0), b.Select(finite, whole, b.ZerosLike(whole)),
                 b.Scalar(shape.dtype(), kMostSquares));
}

// The polynomial in A^4, whose coefficients are polynomials in A.
lowering::Op Polynomial(lowering::Op x) {
  lowering::Builder& b = *x.builder();
  const Shape shape = x.shape();  // NOLINT: as above
  std::array<lowering::Op, kBlock + 1> powers{Identity(b, shape), x};
  for (std::size_t i = 2; i < powers.size(); ++i) powers[i] = Product(powers[i - 1], x);
  const auto block = [&](int first, int count) {
    lowering::Op sum;
    for (int i = 0; i < count; ++i) {
      const double factor = 1 / std::tgamma(first + i + 1.0);
      const lowering::Op term = b.Times(powers[static_cast<std::size_t>(i)], b.Full(shape, factor));
      sum = sum.valid() ? b.Plus(sum, term) : term;
    }
    return sum;
  };
  lowering::Op sum = block(kDegree - kBlock, kBlock + 1);
  for (int first = kDegree - 2 * kBlock; first >= 0; first -= kBlock)
    sum = b.Plus(Product(sum, powers[kBlock]), block(first, kBlock));
  return sum;
}

// Each matrix squared `times` times, a number of its own per matrix.
lowering::Op Squared(lowering::Op x, lowering::Op times) {
  lowering::Builder& builder = *x.builder();
  const Shape matrices = x.shape();  // NOLINT: as above
  const auto is_due = [](lowering::Builder& b, const Wide64& w, const lowering::Ops& s) {
    return b.Compare(ComparisonDirection::kGt, s[0], w(0));
  };
  const lowering::Ops end =
      LoopWhile(builder, {times, x}, is_due,
                [&](lowering::Builder& b, const Wide64& w, const lowering::Ops& s) {
                  const lowering::Op due = ForEachMatrix(is_due(b, w, s), matrices);
                  return lowering::Ops{w.Plus(s[0], -1), b.Select(due, Product(s[1], s[1]), s[1])};
                });
  return end[1];
}

}  // namespace

lowering::Op MatrixExpOp::Lower(lowering::Builder& b, lowering::Op x) const {
  if (const absl::Status s = CheckMatrices(x.shape(), /*square=*/true); !s.ok()) return b.Error(s);
  if (x.shape().num_elements() == 0) return x;
  const Shape shape = x.shape();  // NOLINT: as above
  const lowering::Op halvings = Halvings(x);
  const lowering::Op scale =
      b.Binary(Opcode::kPower, b.Full(halvings.shape(), 2), b.Unary(Opcode::kNegate, halvings));
  return Squared(Polynomial(b.Times(x, b.Convert(ForEachMatrix(scale, shape), shape.dtype()))),
                 halvings);
}

// The exponential of [[A^H, dy], [0, A^H]] has the gradient beside those of A^H (Mathias 1996).
Tensors MatrixExpOp::Vjp(const Saved& s, const Tensor& dy) const {
  const Tensor A = Adjoint(s.x());
  const int64_t n = RowsOf(A.shape());
  if (A.shape().num_elements() == 0) return {dy};
  const Tensor zero = FullConstant(A.shape(), 0, A.device());
  const Tensor whole = Cat({{Cat({{A, dy}}, -1), Cat({{zero, A}}, -1)}}, -2);
  return {Narrow(Narrow(Record(MatrixExpOp{}, whole), -2, 0, n), -1, n, n)};
}

}  // namespace lazuli::lazy
