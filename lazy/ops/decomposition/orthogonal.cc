#include "lazy/ops/decomposition/orthogonal.h"

#include <algorithm>

#include "lazy/ops/decomposition/factors.h"
#include "lazy/ops/decomposition/lapack.h"
#include "lazy/ops/decomposition/matrices.h"

namespace lazuli::lazy {
namespace {

constexpr LapackRoutine kGeqrf{"geqrf", "geqrf"}, kOrgqr{"orgqr", "ungqr"};

Shape TauShape(const Shape& x) {
  return VectorShape(x.dtype(), x, std::min(RowsOf(x), ColumnsOf(x)));
}

std::array<lowering::Op, 2> Reflectors(lowering::Op x) {
  lowering::Builder& b = *x.builder();
  const Shape shape = x.shape();  // NOLINT: a copy, for the original moves as more is built
  if (shape.num_elements() == 0) return {x, b.Full(TauShape(shape), 0)};
  const auto results = LapackCall(kGeqrf, {{x}}, {{shape}, {TauShape(shape), false}}, "{}");
  return {results[0], results[1]};
}

// The product of the reflectors that x [..., m, n] holds, n at most m.
lowering::Op ProductOf(lowering::Op x, lowering::Op tau) {
  lowering::Builder& b = *x.builder();
  const Shape shape = x.shape();  // NOLINT: as above
  if (shape.num_elements() == 0 || tau.shape().num_elements() == 0) return Identity(b, shape);
  return LapackCall(kOrgqr, {{x}, {tau, false}}, {{shape}}, "{}")[0];
}

// X + X^H with the real part of X's diagonal: the adjoint of taking the triangle of a Hermitian
// matrix.
Tensor Symmetrized(const Tensor& upper) {
  const Tensor sum = upper + Adjoint(upper);
  return WithDiagonal(sum, DiagonalOf(sum) * 0.5);
}

// For a square or tall matrix: [dQ + Q sym(triu(dR R^H - Q^H dQ))] R^-H.
Tensor GradientOfTall(const Tensor& Q, const Tensor& R, const Tensor& dQ, const Tensor& dR) {
  Tensor inner;
  if (dR.defined()) inner = Matmul(dR, Adjoint(R));
  if (dQ.defined()) {
    const Tensor of_q = Matmul(Adjoint(Q), dQ);
    inner = inner.defined() ? inner - of_q : -of_q;
  }
  Tensor sum = Matmul(Q, Symmetrized(Triu(inner, 0)));
  if (dQ.defined()) sum = sum + dQ;
  return Record(TriangularSolveOp{false, true, true, false}, R, sum);
}

}  // namespace

std::array<lowering::Op, 2> QrOp::Lower(lowering::Builder& b, lowering::Op x) const {
  if (const absl::Status s = CheckMatrices(x.shape(), /*square=*/false); !s.ok())
    return {b.Error(s), b.Error(s)};
  const int64_t m = RowsOf(x.shape()), n = ColumnsOf(x.shape());
  const int64_t k = mode == QrMode::kComplete ? m : std::min(m, n);
  const auto [reflectors, tau] = Reflectors(x);
  if (mode == QrMode::kTriangle)
    return {b.Full(Shape(tau.dtype(), {0}), 0), UpperTriangle(WithSize(reflectors, k, n))};
  return {ProductOf(WithSize(reflectors, m, k), tau), UpperTriangle(WithSize(reflectors, k, n))};
}

Tensors QrOp::Vjp(const Saved& s, absl::Span<const Tensor> dys) const {
  if (mode == QrMode::kTriangle) {
    ThrowRecordError(
        "linalg.qr",
        Unimplemented("The derivative of linalg.qr depends on Q, which is not computed "
                      "when mode='r'. Please use linalg.qr(A, mode='reduced') if you "
                      "are going to differentiate through linalg.qr"));
  }
  const Tensor Q = s.y(0), R = s.y(1);
  const int64_t m = RowsOf(s.shape()), n = ColumnsOf(s.shape());
  if (mode == QrMode::kComplete && m > n) {
    ThrowRecordError("linalg.qr", Unimplemented("The QR decomposition is not differentiable when "
                                                "mode='complete' and nrows > ncols"));
  }
  if (!dys[0].defined() && !dys[1].defined()) return {Tensor()};
  if (s.shape().num_elements() == 0) return {FullConstant(s.shape(), 0, Q.device())};
  if (m >= n) return {GradientOfTall(Q, R, dys[0], dys[1])};
  // The columns of A beside its square part are the product of Q and those of R.
  Tensor dQ = dys[0], beside, dR;
  const Tensor square = FirstColumns(R, m);
  if (dys[1].defined()) {
    const Tensor dR_beside = Narrow(dys[1], -1, m, n - m);
    beside = Matmul(Q, dR_beside);
    dR = FirstColumns(dys[1], m);
    const Tensor of_q = Matmul(Matmul(Q, Narrow(R, -1, m, n - m)), Adjoint(dR_beside));
    dQ = dQ.defined() ? dQ + of_q : of_q;
  } else {
    beside = FullConstant(MatrixShape(s.shape(), m, n - m), 0, Q.device());
  }
  return {Cat({{GradientOfTall(Q, square, dQ, dR), beside}}, -1)};
}

std::array<lowering::Op, 2> GeqrfOp::Lower(lowering::Builder& b, lowering::Op x) const {
  if (const absl::Status s = CheckMatrices(x.shape(), /*square=*/false); !s.ok())
    return {b.Error(s), b.Error(s)};
  return Reflectors(x);
}

lowering::Op HouseholderProductOp::Lower(lowering::Builder& b, lowering::Op a,
                                         lowering::Op tau) const {
  if (const absl::Status s = CheckMatrices(a.shape(), /*square=*/false); !s.ok()) return b.Error(s);
  const Shape &as = a.shape(), &ts = tau.shape();
  if (ts.rank() != as.rank() - 1 || ts != VectorShape(as.dtype(), as, ts.dim(ts.rank() - 1)) ||
      ts.dim(ts.rank() - 1) > ColumnsOf(as) || ColumnsOf(as) > RowsOf(as))
    return b.Error(InvalidArgument("A ", as, " and tau ", ts, " do not fit each other"));
  return ProductOf(a, tau);
}

// The gradient of reflector H_i of Q = H_1 ... H_k is g rest^H, where g = (H_1 ... H_(i-1))^H dQ and
// rest = H_(i+1) ... H_k. In the loop, g gets the adjoint of each reflector as a factor, and rest,
// which begins as Q, loses each by its inverse.
Tensors HouseholderProductOp::Vjp(const Saved& s, const Tensor& dy) const {
  const Tensor A = s.x(0), tau = s.x(1);
  const int64_t k = tau.dim(tau.rank() - 1), n = ColumnsOf(A.shape());
  if (k == 0 || A.shape().num_elements() == 0)
    return {FullConstant(A.shape(), 0, A.device()), FullConstant(tau.shape(), 0, A.device())};
  const Tensor vectors = WithDiagonal(Tril(A, -1), OnesLike(DiagonalOf(FirstRows(A, n))));
  Tensor rest = s.y(0), g = dy;
  Tensors of_vectors, of_tau;
  for (int64_t i = 0; i < k; ++i) {
    const Tensor v = Narrow(vectors, -1, i, 1), v_h = Adjoint(v);
    const Tensor t = Unsqueeze(Narrow(tau, -1, i, 1), -1);
    const Tensor inverse = t / (t * Matmul(v_h, v) - 1.0);
    rest = rest - inverse * Matmul(v, Matmul(v_h, rest));
    const Tensor gv = Matmul(Adjoint(g), v), rv = Matmul(Adjoint(rest), v);
    of_tau.push_back(-Conj(Squeeze(Matmul(v_h, Matmul(rest, gv)), -1)));
    const Tensor of_v = -(Conj(t) * Matmul(g, rv)) - t * Matmul(rest, gv);
    of_vectors.push_back(of_v);
    g = g - Conj(t) * Matmul(v, Matmul(v_h, g));
  }
  Tensor of_a = Cat(of_vectors, -1);
  if (k < n) {
    const Shape beside = MatrixShape(A.shape(), RowsOf(A.shape()), n - k);
    of_a = Cat({{of_a, FullConstant(beside, 0, A.device())}}, -1);
  }
  return {Tril(of_a, -1), Cat(of_tau, -1)};
}

}  // namespace lazuli::lazy
