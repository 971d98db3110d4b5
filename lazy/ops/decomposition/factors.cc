#include "lazy/ops/decomposition/factors.h"

#include <algorithm>
#include <optional>

#include "lazy/ops/core/step_loop.h"
#include "lazy/ops/decomposition/lapack.h"
#include "lazy/ops/decomposition/matrices.h"

namespace lazuli::lazy {
namespace {

using hlo::ComparisonDirection;
using lowering::Opcode;

constexpr LapackRoutine kPotrf{"potrf", "potrf"}, kGetrf{"getrf", "getrf"}, kTrsm{"trsm", "trsm"};

struct Factored {
  lowering::Op factors, pivots, info;
};

Factored Factorize(lowering::Op x) {
  lowering::Builder& b = *x.builder();
  const Shape shape = x.shape();  // NOLINT: a copy, for the original moves as more is built
  const Shape pivots = VectorShape(DType::kS32, shape, std::min(RowsOf(shape), ColumnsOf(shape)));
  const Shape info = InfoShape(shape);
  if (shape.num_elements() == 0) return {x, b.Full(pivots, 0), b.Full(info, 0)};
  const auto results = LapackCall(kGetrf, {{x}}, {{shape}, {pivots, false}, {info, false}}, "{}");
  return {results[0], results[1], results[2]};
}

lowering::Op SolveTriangle(const TriangularSolveOp& kind, lowering::Op a, lowering::Op x) {
  const Shape shape = x.shape();  // NOLINT: as above
  if (shape.num_elements() == 0) return x;
  const char trans = !kind.adjoint ? 'N' : ir::IsComplex(shape.dtype()) ? 'C' : 'T';
  const std::string config =
      Str("{diag = ", int{kind.unitriangular ? 'U' : 'N'},
          " : ui8, side = ", int{kind.left ? 'L' : 'R'}, " : ui8, trans_x = ", int{trans},
          " : ui8, uplo = ", int{kind.upper ? 'U' : 'L'}, " : ui8}");
  return LapackCall(kTrsm, {{a}, {x}}, {{shape}}, config, /*aliased=*/1)[0];
}

// Pivots [..., k] to rows [N, m], in which row i was exchanged with row pivots[i] - 1 for each i.
lowering::Op ExchangedRows(lowering::Op pivots, int64_t m) {
  lowering::Builder& builder = *pivots.builder();
  const Shape shape = pivots.shape();  // NOLINT: as above
  const int64_t k = shape.dim(shape.rank() - 1), n = k == 0 ? 0 : shape.num_elements() / k;
  const Shape rows(DType::kS32, {n, m});
  const auto exchange = [&](const LoopStep& step) -> std::vector<lowering::Op> {
    lowering::Builder& b = step.b;
    const lowering::Op order = step.carried[0], place = b.Iota(rows, 1);
    const auto at_step = [&](lowering::Op x) {
      const lowering::Op zero = b.Scalar(step.number.dtype(), 0);
      const lowering::Op column = b.DynamicSlice(x, {zero, step.number}, {n, 1});
      return b.Broadcast(b.Reshape(column, {n}), {n, m}, {0});
    };
    const lowering::Op number = b.Broadcast(b.Convert(step.number, DType::kS32), {n, m}, {});
    const lowering::Op here = b.Compare(ComparisonDirection::kEq, place, number);
    const lowering::Op there = b.Compare(ComparisonDirection::kEq, place,
                                         b.Minus(at_step(step.fixed[0]), b.Full(rows, 1)));
    const lowering::Op other =
        b.Reduce(Opcode::kAdd, b.Select(there, order, b.ZerosLike(order)), {1});
    return {
        b.Select(here, b.Broadcast(other, {n, m}, {0}), b.Select(there, at_step(order), order))};
  };
  return ForEachStep(builder, k, StepOrder::kForward, {builder.Iota(rows, 1)},
                     {builder.Reshape(pivots, {n, k})}, exchange)[0];
}

// The rows of x [..., m, n] in the order [N, m].
lowering::Op TakeRows(lowering::Op x, lowering::Op order) {
  lowering::Builder& b = *x.builder();
  const Shape shape = x.shape();  // NOLINT: as above
  const int64_t m = RowsOf(shape), n = ColumnsOf(shape), count = shape.num_elements() / n;
  const Shape places(DType::kS64, {count / m, m});
  const lowering::Op first = b.Times(b.Iota(places, 0), b.Full(places, static_cast<double>(m)));
  const lowering::Op rows = b.Plus(b.Convert(order, DType::kS64), first);
  hlo::GatherAttrs attrs;
  attrs.offset_dims = {1};
  attrs.collapsed_slice_dims = {0};
  attrs.start_index_map = {0};
  attrs.index_vector_dim = 1;
  attrs.slice_sizes = {1, n};
  const lowering::Op taken =
      b.Gather(b.Reshape(x, {count, n}), b.Reshape(rows, {count, 1}), std::move(attrs));
  return b.Reshape(taken, shape.dims());
}

// The diagonals [..., n] of matrices [..., n, n].
lowering::Op TakeDiagonal(lowering::Op x) {
  lowering::Builder& b = *x.builder();
  const Shape shape = x.shape();  // NOLINT: as above
  const lowering::Op unit = Identity(b, Shape(DType::kS32, shape.dims()));
  const lowering::Op on_it = b.Compare(ComparisonDirection::kNe, unit, b.ZerosLike(unit));
  return b.Reduce(Opcode::kAdd, b.Select(on_it, x, b.ZerosLike(x)), {shape.rank() - 1});
}

// -1 for each matrix whose rows were exchanged an odd number of times, else 1.
lowering::Op Parity(lowering::Op pivots, DType dtype) {
  lowering::Builder& b = *pivots.builder();
  const int64_t last = pivots.rank() - 1;
  const Shape shape = pivots.shape();  // NOLINT: as above
  const lowering::Op place = b.Plus(b.Iota(shape, last), b.Full(shape, 1));
  const lowering::Op differs =
      b.Convert(b.Compare(ComparisonDirection::kNe, pivots, place), DType::kS32);
  const lowering::Op count = b.Reduce(Opcode::kAdd, differs, {last});
  const lowering::Op odd = b.Binary(Opcode::kAnd, count, b.Full(count.shape(), 1));
  const lowering::Op sign = b.Minus(b.Full(odd.shape(), 1), b.Plus(odd, odd));
  return b.Convert(sign, dtype);
}

lowering::Op ProductOverLast(lowering::Op x) {
  return x.builder()->Reduce(Opcode::kMultiply, x, {x.rank() - 1});
}

// Whether a gradient is differentiated again: it may not be computed from saved factors then, which
// have no history.
bool MakesHistory() { return GradEnabled(); }

// Factors without zeros on their diagonal, so that something can be solved with them.
Tensor NotSingular(const Tensor& factors) {
  const Tensor diagonal = DiagonalOf(factors);
  const DType dtype = factors.dtype();
  const Tensor zero = Eq(diagonal, Constant(0, dtype));
  return WithDiagonal(factors, Where(zero, Constant(EpsilonOf(dtype), dtype), diagonal));
}

// One number per matrix as matrices.
Tensor AcrossMatrices(const Tensor& numbers) { return Unsqueeze(Unsqueeze(numbers, -1), -1); }

// A^-H c for one number c per matrix: the gradient of functions of the determinant. If it is
// differentiated again, a singular matrix is an error at the read.
Tensor ScaledInverse(const Tensor& A, const Tensor& factors, const Tensor& pivots,
                     const Tensor& c) {
  const Tensor scaled = IdentityLike(A) * AcrossMatrices(c);
  if (MakesHistory()) return LinalgSolve(Adjoint(A), scaled);
  return SolveFactored(NotSingular(factors), pivots, scaled, /*adjoint=*/true);
}

// The products over the last dim of all elements but one.
Tensor ProductsOfOthers(const Tensor& x) {
  const int64_t n = x.shape().dim(x.shape().rank() - 1);
  const Tensor one = OnesLike(Narrow(x, -1, 0, 1));
  const Tensor before = Cumprod(Cat({{one, Narrow(x, -1, 0, n - 1)}}, -1), -1);
  const Tensor behind = Cat({{Narrow(x, -1, 1, n - 1), one}}, -1);
  return before * Flip(Cumprod(Flip(behind, {-1}), -1), {-1});
}

// The conjugate cofactors of A times a number per matrix, by singular values: of every matrix, also
// where there is no inverse (Stewart 1998, "On the adjugate matrix").
Tensor ScaledCofactors(const Tensor& A, const Tensor& c) {
  const auto [U, S, Vh] = LinalgSvd(A, /*full_matrices=*/false, std::nullopt);
  const Tensor sign = Conj(LinalgDet(U) * LinalgDet(Vh)) * c;
  const Tensor scales = To(ProductsOfOthers(S), A.dtype()) * Unsqueeze(sign, -1);
  return Matmul(U * Unsqueeze(scales, -2), Vh);
}

// The gradient of determinants, of which gradients are wanted. Each way sees other matrices in place
// of those that it is not for, so that its own gradients are numbers.
Tensor DetGradient(const Tensor& A, const Tensor& factors, const Tensor& det, const Tensor& dy) {
  const int64_t n = RowsOf(A.shape());
  if (n == 0) return A;
  const DType dtype = A.dtype();
  const Tensor zero = Eq(DiagonalOf(factors), Constant(0, dtype));
  const Tensor singular = AcrossMatrices(Any(zero, {-1}));
  const Tensor identity = IdentityLike(A);
  const Tensor others = identity * (To(Arange(n, DType::kS64, A.device()), dtype) + 1.0);
  const Tensor scaled = identity * AcrossMatrices(dy * Conj(det));
  const Tensor solved = RecordAll(SolveOp{}, {{Adjoint(Where(singular, identity, A)), scaled}})[0];
  return Where(singular, ScaledCofactors(Where(singular, A, others), dy), solved);
}

}  // namespace

std::array<lowering::Op, 2> CholeskyOp::Lower(lowering::Builder& b, lowering::Op x) const {
  if (const absl::Status s = CheckMatrices(x.shape(), /*square=*/true); !s.ok())
    return {b.Error(s), b.Error(s)};
  const Shape shape = x.shape(), info = InfoShape(shape);  // NOLINT: as above
  if (shape.num_elements() == 0) return {x, b.Full(info, 0)};
  const std::string config = Str("{uplo = ", int{upper ? 'U' : 'L'}, " : ui8}");
  const auto results = LapackCall(kPotrf, {{x}}, {{shape}, {info, false}}, config);
  return {upper ? UpperTriangle(results[0]) : LowerTriangle(results[0]), results[1]};
}

// L^-H X L^-1 / 2, where X is the lower triangle of L^H dL, with its adjoint above the diagonal.
Tensors CholeskyOp::Vjp(const Saved& s, absl::Span<const Tensor> dys) const {
  if (!dys[0].defined()) return {Tensor()};
  const Tensor L = upper ? Adjoint(s.y(0)) : s.y(0), dL = upper ? Adjoint(dys[0]) : dys[0];
  const Tensor lower = Tril(Matmul(Adjoint(L), dL), 0);
  const Tensor whole = (lower + Adjoint(Tril(lower, -1))) * 0.5;
  const TriangularSolveOp from_left{true, false, true, false};
  const TriangularSolveOp from_right{false, false, false, false};
  return {Record(from_right, L, Record(from_left, L, whole))};
}

std::array<lowering::Op, 3> LuOp::Lower(lowering::Builder& b, lowering::Op x) const {
  if (const absl::Status s = CheckMatrices(x.shape(), /*square=*/false); !s.ok())
    return {b.Error(s), b.Error(s), b.Error(s)};
  const Factored f = Factorize(x);
  return {f.factors, f.pivots, f.info};
}

// With dA = P (dL U + L dU): the two triangles of L^-1 P^T dA U^-1 are L^-1 dL and dU U^-1. What is
// beyond the square part of A is a product with one of the factors alone.
Tensors LuOp::Vjp(const Saved& s, absl::Span<const Tensor> dys) const {
  if (!dys[0].defined()) return {Tensor()};
  const Tensor factors = s.y(0), g = dys[0];
  const int64_t m = RowsOf(factors.shape()), n = ColumnsOf(factors.shape()), k = std::min(m, n);
  if (factors.shape().num_elements() == 0) return {g};
  const auto square = [&](const Tensor& x) { return FirstColumns(FirstRows(x, k), k); };
  const Tensor both = square(factors), g_both = square(g);
  const Tensor L = Tril(both, -1) + IdentityLike(both), U = Triu(both, 0);
  Tensor of_l = Matmul(Adjoint(L), Tril(g_both, -1)), of_u = Matmul(Triu(g_both, 0), Adjoint(U));
  const TriangularSolveOp by_l{true, false, true, true}, by_u{false, true, true, false};
  Tensor rest;
  if (m > n) {
    const Tensor g_below = Narrow(g, -2, n, m - n);
    of_u = of_u - Matmul(Adjoint(Narrow(factors, -2, n, m - n)), g_below);
    rest = Record(by_u, U, g_below);
  } else if (n > m) {
    const Tensor g_beside = Narrow(g, -1, m, n - m);
    of_l = of_l - Matmul(g_beside, Adjoint(Narrow(factors, -1, m, n - m)));
    rest = Record(by_l, L, g_beside);
  }
  Tensor gradient = Record(by_u, U, Record(by_l, L, Tril(of_l, -1) + Triu(of_u, 0)));
  if (rest.defined()) gradient = Cat({{gradient, rest}}, m > n ? -2 : -1);
  return {RowsInOrder(gradient, Argsort(Record(PermutationOp{m}, s.y(1)), -1))};
}

lowering::Op PermutationOp::Lower(lowering::Builder& b, lowering::Op pivots) const {
  if (pivots.dtype() != DType::kS32 || pivots.rank() < 1)
    return b.Error(InvalidArgument("takes pivots of s32, not ", pivots.shape()));
  Dims dims(pivots.shape().dims().begin(), pivots.shape().dims().end() - 1);
  dims.push_back(size);
  const Shape shape(DType::kS32, dims);
  if (pivots.shape().num_elements() == 0) return b.Iota(shape, shape.rank() - 1);
  return b.Reshape(ExchangedRows(pivots, size), dims);
}

lowering::Op TriangularSolveOp::Lower(lowering::Builder& b, lowering::Op a, lowering::Op x) const {
  for (const lowering::Op& operand : {a, x}) {
    if (const absl::Status s = CheckMatrices(operand.shape(), /*square=*/false); !s.ok())
      return b.Error(s);
  }
  const Shape &as = a.shape(), &xs = x.shape();
  const int64_t size = left ? RowsOf(xs) : ColumnsOf(xs);
  if (as != MatrixShape(as, size, size) || BatchOf(as) != BatchOf(xs) || as.dtype() != xs.dtype())
    return b.Error(InvalidArgument("A ", as, " and B ", xs, " do not fit each other"));
  return SolveTriangle(*this, a, x);
}

Tensors TriangularSolveOp::Vjp(const Saved& s, const Tensor& dy) const {
  const Tensor A = s.x(0), X = s.y(0);
  TriangularSolveOp back = *this;
  back.adjoint = !adjoint;
  const Tensor g = Record(back, A, dy);
  Tensors grads{Tensor(), g};
  if (!s.needs(0)) return grads;
  // The gradient of the matrix that is solved with, which is A or its adjoint.
  const Tensor of_used = left ? -Matmul(g, Adjoint(X)) : -Matmul(Adjoint(X), g);
  const Tensor whole = adjoint ? Adjoint(of_used) : of_used;
  const int64_t off = unitriangular ? 1 : 0;
  grads[0] = upper ? Triu(whole, off) : Tril(whole, -off);
  return grads;
}

std::array<lowering::Op, 4> SolveOp::Lower(lowering::Builder& b, lowering::Op a,
                                           lowering::Op x) const {
  const auto refuse = [&](const absl::Status& s) {
    const lowering::Op none = b.Error(s);
    return std::array{none, none, none, none};
  };
  if (const absl::Status s = CheckMatrices(a.shape(), /*square=*/true); !s.ok()) return refuse(s);
  const Shape as = a.shape(), xs = x.shape();  // NOLINT: as above
  if (as.dtype() != xs.dtype() || xs.rank() != as.rank() || BatchOf(xs) != BatchOf(as) ||
      RowsOf(xs) != RowsOf(as))
    return refuse(InvalidArgument("A ", as, " and B ", xs, " do not fit each other"));
  const auto [factors, pivots, info] = Factorize(a);
  if (xs.num_elements() == 0) return {x, factors, pivots, info};
  const lowering::Op rows = TakeRows(x, ExchangedRows(pivots, RowsOf(as)));
  const lowering::Op half = SolveTriangle({true, false, false, true}, factors, rows);
  return {SolveTriangle({true, true, false, false}, factors, half), factors, pivots, info};
}

Tensors SolveOp::Vjp(const Saved& s, absl::Span<const Tensor> dys) const {
  if (!dys[0].defined()) return Tensors(2);
  const Tensor g = MakesHistory() ? RecordAll(SolveOp{}, {{Adjoint(s.x(0)), dys[0]}})[0]
                                  : SolveFactored(s.y(1), s.y(2), dys[0], /*adjoint=*/true);
  return {s.needs(0) ? -Matmul(g, Adjoint(s.y(0))) : Tensor(), g};
}

std::array<lowering::Op, 3> DetOp::Lower(lowering::Builder& b, lowering::Op x) const {
  if (const absl::Status s = CheckMatrices(x.shape(), /*square=*/true); !s.ok())
    return {b.Error(s), b.Error(s), b.Error(s)};
  const auto [factors, pivots, info] = Factorize(x);
  const lowering::Op product = ProductOverLast(TakeDiagonal(factors));
  return {b.Times(Parity(pivots, x.dtype()), product), factors, pivots};
}

// d det = det tr(A^-1 dA).
Tensors DetOp::Vjp(const Saved& s, absl::Span<const Tensor> dys) const {
  if (!dys[0].defined()) return {Tensor()};
  if (MakesHistory()) return {DetGradient(s.x(0), s.y(1), s.y(0), dys[0])};
  return {ScaledInverse(s.x(0), s.y(1), s.y(2), dys[0] * Conj(s.y(0)))};
}

std::array<lowering::Op, 4> SlogdetOp::Lower(lowering::Builder& b, lowering::Op x) const {
  if (const absl::Status s = CheckMatrices(x.shape(), /*square=*/true); !s.ok()) {
    const lowering::Op none = b.Error(s);
    return {none, none, none, none};
  }
  const auto [factors, pivots, info] = Factorize(x);
  const lowering::Op diagonal = TakeDiagonal(factors);
  const lowering::Op size = b.Unary(Opcode::kAbs, diagonal);
  const lowering::Op sign = ProductOverLast(b.Unary(Opcode::kSign, diagonal));
  const lowering::Op log =
      b.Reduce(Opcode::kAdd, b.Unary(Opcode::kLog, size), {diagonal.rank() - 1});
  return {b.Times(Parity(pivots, x.dtype()), sign), log, factors, pivots};
}

// With w = tr(A^-1 dA): d log|det| = Re w and d sign = i sign Im w.
Tensors SlogdetOp::Vjp(const Saved& s, absl::Span<const Tensor> dys) const {
  const Tensor sign = s.y(0);
  const bool complex = IsComplex(sign.dtype());
  Tensor c = dys[1].defined() ? To(dys[1], sign.dtype()) : Tensor();
  if (complex && dys[0].defined()) {
    const Tensor angle = Imag(Conj(dys[0]) * sign);
    const Tensor turned = -Complex(ZerosLike(angle), angle);
    c = c.defined() ? c + turned : turned;
  }
  if (!c.defined()) return {Tensor()};
  return {ScaledInverse(s.x(0), s.y(2), s.y(3), c)};
}

Tensor SolveFactored(const Tensor& factors, const Tensor& pivots, const Tensor& b, bool adjoint) {
  const int64_t n = RowsOf(factors.shape());
  const Tensor order = Record(PermutationOp{n}, pivots);
  const TriangularSolveOp by_l{true, false, adjoint, true}, by_u{true, true, adjoint, false};
  if (!adjoint) return Record(by_u, factors, Record(by_l, factors, RowsInOrder(b, order)));
  return RowsInOrder(Record(by_l, factors, Record(by_u, factors, b)), Argsort(order, -1));
}

}  // namespace lazuli::lazy
