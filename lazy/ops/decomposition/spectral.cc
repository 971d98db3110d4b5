#include "lazy/ops/decomposition/spectral.h"

#include <algorithm>

#include "lazy/ops/decomposition/factors.h"
#include "lazy/ops/decomposition/lapack.h"
#include "lazy/ops/decomposition/matrices.h"

namespace lazuli::lazy {
namespace {

using hlo::ComparisonDirection;
using lowering::Opcode;

constexpr LapackRoutine kSyevd{"syevd", "heevd"}, kGeev{"geev", "geev"}, kGesdd{"gesdd", "gesdd"};

constexpr double kPhaseTolerance = 1e-2;  // as PyTorch has it

DType ComplexType(DType dtype) {
  return hlo::PartType(dtype) == DType::kF32 ? DType::kC64 : DType::kC128;
}

// x_j - x_i at [i, j], 1 where i = j.
Tensor Gaps(const Tensor& x) {
  const Tensor gaps = Unsqueeze(x, -2) - Unsqueeze(x, -1);
  return WithDiagonal(gaps, OnesLike(x));
}

// x; a run fails in which a loss depends on the phase of vectors.
Tensor WithChecked(const Tensor& x, Gauge gauge, const Tensor& phase) {
  return Record(CheckGaugeOp{gauge}, x, phase);
}

}  // namespace

std::array<lowering::Op, 3> EighOp::Lower(lowering::Builder& b, lowering::Op x) const {
  if (const absl::Status s = CheckMatrices(x.shape(), /*square=*/true); !s.ok())
    return {b.Error(s), b.Error(s), b.Error(s)};
  const Shape shape = x.shape(), info = InfoShape(shape);  // NOLINT: it moves as more is built
  const Shape values = VectorShape(hlo::PartType(shape.dtype()), shape, RowsOf(shape));
  if (shape.num_elements() == 0) return {b.Full(values, 0), x, b.Full(info, 0)};
  const std::string config = Str("{mode = ", int{vectors ? 'V' : 'N'},
                                 " : ui8, uplo = ", int{lower ? 'L' : 'U'}, " : ui8}");
  const auto results = LapackCall(kSyevd, {{x}}, {{shape}, {values, false}, {info, false}}, config);
  return {results[1], results[0], results[2]};
}

// V (diag(dL) + X / gaps of L) V^H, where X is the skew part of V^H dV.
Tensors EighOp::Vjp(const Saved& s, absl::Span<const Tensor> dys) const {
  if (!dys[0].defined() && !dys[1].defined()) return {Tensor()};
  if (s.shape().num_elements() == 0) return {FullConstant(s.shape(), 0, s.y(0).device())};
  const Tensor values = s.y(0), V = s.y(1);
  const bool complex = IsComplex(V.dtype());
  if (!dys[1].defined()) {
    const Tensor scaled = V * Unsqueeze(To(dys[0], V.dtype()), -2);
    return {Matmul(scaled, Adjoint(V))};
  }
  Tensor turned = Matmul(Adjoint(V), dys[1]);
  if (complex) turned = WithChecked(turned, Gauge::kEigh, Imag(DiagonalOf(turned)));
  Tensor inner = TwiceSkew(turned) * 0.5 / Gaps(values);
  const Tensor none = FullConstant(Shape(V.dtype(), values.shape().dims()), 0, V.device());
  inner = WithDiagonal(inner, dys[0].defined() ? To(dys[0], V.dtype()) : none);
  return {Matmul(V, Matmul(inner, Adjoint(V)))};
}

std::array<lowering::Op, 3> EigOp::Lower(lowering::Builder& b, lowering::Op x) const {
  if (const absl::Status s = CheckMatrices(x.shape(), /*square=*/true); !s.ok())
    return {b.Error(s), b.Error(s), b.Error(s)};
  const Shape shape = x.shape(), info = InfoShape(shape);  // NOLINT: as above
  const DType dtype = shape.dtype(), complex = ComplexType(dtype);
  const Shape values = VectorShape(dtype, shape, RowsOf(shape));
  const Shape pairs(complex, shape.dims());
  if (shape.num_elements() == 0)
    return {b.Full(Shape(complex, values.dims()), 0), b.Full(pairs, 0), b.Full(info, 0)};
  const std::string config = Str("{compute_left = ", int{'N'},
                                 " : ui8, compute_right = ", int{vectors ? 'V' : 'N'}, " : ui8}");
  if (IsComplex(dtype)) {
    const auto results = LapackCall(
        kGeev, {{x}}, {{values, false}, {pairs}, {pairs}, {info, false}}, config, /*aliased=*/-1);
    return {results[0], results[2], results[3]};
  }
  const auto results =
      LapackCall(kGeev, {{x}}, {{values, false}, {values, false}, {pairs}, {pairs}, {info, false}},
                 config, /*aliased=*/-1);
  return {b.Binary(Opcode::kComplex, results[0], results[1]), results[3], results[4]};
}

// V^-H (diag(dL) + (V^H dV - V^H V Re(diag(V^H dV))) / conj(gaps of L)) V^H.
Tensors EigOp::Vjp(const Saved& s, absl::Span<const Tensor> dys) const {
  if (!dys[0].defined() && !dys[1].defined()) return {Tensor()};
  if (s.shape().num_elements() == 0) return {FullConstant(s.shape(), 0, s.y(0).device())};
  const Tensor values = s.y(0), V = s.y(1);
  Tensor inner;
  if (dys[1].defined()) {
    const Tensor plain = Matmul(Adjoint(V), dys[1]);
    const Tensor turned = WithChecked(plain, Gauge::kEig, Imag(DiagonalOf(plain)));
    const Tensor length = To(Real(DiagonalOf(turned)), V.dtype());
    const Tensor of_length = Matmul(Adjoint(V), V * Unsqueeze(length, -2));
    inner = (turned - of_length) / Conj(Gaps(values));
    inner = WithDiagonal(inner, dys[0].defined() ? dys[0] : ZerosLike(values));
  } else {
    inner = DiagEmbed(dys[0], 0, -2, -1);
  }
  const Tensor adjoint = Adjoint(V);
  const Tensor whole = RecordAll(SolveOp{}, {{adjoint, Matmul(inner, adjoint)}})[0];
  return {IsComplex(s.shape().dtype()) ? whole : Real(whole)};
}

std::array<lowering::Op, 4> SvdOp::Lower(lowering::Builder& b, lowering::Op x) const {
  if (const absl::Status s = CheckMatrices(x.shape(), /*square=*/false); !s.ok()) {
    const lowering::Op none = b.Error(s);
    return {none, none, none, none};
  }
  const Shape shape = x.shape(), info = InfoShape(shape);  // NOLINT: as above
  const int64_t m = RowsOf(shape), n = ColumnsOf(shape), k = std::min(m, n);
  const bool whole = full_matrices || !vectors;
  const Shape values = VectorShape(hlo::PartType(shape.dtype()), shape, k);
  const Shape left = MatrixShape(shape, m, whole ? m : k),
              right = MatrixShape(shape, whole ? n : k, n);
  if (shape.num_elements() == 0)
    return {Identity(b, left), b.Full(values, 0), Identity(b, right), b.Full(info, 0)};
  const char mode = !vectors ? 'N' : full_matrices ? 'A' : 'S';
  const auto results =
      LapackCall(kGesdd, {{x}}, {{shape}, {values, false}, {left}, {right}, {info, false}},
                 Str("{mode = ", int{mode}, " : ui8}"));
  return {results[2], results[1], results[3], results[4]};
}

namespace {

// The part of the gradient of the singular vectors within the spans of U and V: the matrix between
// U and Vh. U^H dU and V^H dV count by their skew parts.
Tensor BetweenVectors(const Tensor& U, const Tensor& S, const Tensor& Vh, const Tensor& dU,
                      const Tensor& dVh) {
  const bool complex = IsComplex(U.dtype());
  Tensor of_u, of_v;
  if (dU.defined()) of_u = TwiceSkew(Matmul(Adjoint(U), dU));
  if (dVh.defined()) of_v = TwiceSkew(Matmul(Vh, Adjoint(dVh)));
  if (complex) {
    const Tensor both = of_u.defined() && of_v.defined() ? of_u + of_v
                        : of_u.defined()                 ? of_u
                                                         : of_v;
    Tensor& one = of_u.defined() ? of_u : of_v;
    one = WithChecked(one, Gauge::kSvd, Imag(DiagonalOf(both)));
  }
  const Tensor column = Unsqueeze(S, -1), row = Unsqueeze(S, -2);
  const Tensor gaps = WithDiagonal((row - column) * (row + column), OnesLike(S));
  Tensor sum;
  if (of_u.defined()) sum = of_u * row;
  if (of_v.defined()) sum = sum.defined() ? sum + column * of_v : column * of_v;
  sum = sum / gaps;
  if (complex && of_u.defined() && of_v.defined())
    sum = sum + DiagEmbed(DiagonalOf(of_u) / (S * 2.0), 0, -2, -1);
  return sum;
}

}  // namespace

// U (BetweenVectors() + diag(dS)) Vh; and if U or V does not span its space, the part of dU or dVh
// outside of the span, over S.
Tensors SvdOp::Vjp(const Saved& s, absl::Span<const Tensor> dys) const {
  if (!dys[0].defined() && !dys[1].defined() && !dys[2].defined()) return {Tensor()};
  if (s.shape().num_elements() == 0) return {FullConstant(s.shape(), 0, s.y(1).device())};
  const int64_t m = RowsOf(s.shape()), n = ColumnsOf(s.shape()), k = std::min(m, n);
  const Tensor U = FirstColumns(s.y(0), k), S = s.y(1), Vh = FirstRows(s.y(2), k);
  const Tensor dU = dys[0].defined() ? FirstColumns(dys[0], k) : dys[0], dS = dys[1],
               dVh = dys[2].defined() ? FirstRows(dys[2], k) : dys[2];
  if (!dU.defined() && !dVh.defined()) return {Matmul(U * Unsqueeze(To(dS, U.dtype()), -2), Vh)};
  Tensor inner = BetweenVectors(U, S, Vh, dU, dVh);
  if (dS.defined()) inner = inner + DiagEmbed(To(dS, U.dtype()), 0, -2, -1);
  if (m > k && dU.defined()) {
    const Tensor over = dU / Unsqueeze(S, -2);
    const Tensor beyond = over - Matmul(U, Matmul(Adjoint(U), over));
    return {Matmul(Matmul(U, inner) + beyond, Vh)};
  }
  if (n > k && dVh.defined()) {
    const Tensor over = dVh / Unsqueeze(S, -1);
    const Tensor beyond = over - Matmul(Matmul(over, Adjoint(Vh)), Vh);
    return {Matmul(U, Matmul(inner, Vh) + beyond)};
  }
  return {Matmul(U, Matmul(inner, Vh))};
}

lowering::Op CheckGaugeOp::Lower(lowering::LoweringContext& c, lowering::Op x,
                                 lowering::Op phase) const {
  static constexpr std::array<std::string_view, 3> kNames = {"linalg_eigh_backward",
                                                             "linalg_eig_backward", "svd_backward"};
  const bool singular = gauge == Gauge::kSvd;
  lowering::Builder& b = c.builder;
  const int64_t n = phase.shape().num_elements();
  if (n == 0) return x;
  const lowering::Op size = b.Unary(Opcode::kAbs, b.Reshape(phase, {n}));
  const lowering::Op bad =
      b.Compare(ComparisonDirection::kGt, size, b.Full(size.shape(), kPhaseTolerance));
  const lowering::Op place = b.Iota(Shape(DType::kS64, {n}), 0);
  c.CheckNone(
      bad, place,
      {.op = std::string(kNames[static_cast<std::size_t>(gauge)]),
       .before =
           Str("The ", singular ? "singular vectors" : "eigenvectors",
               " in the complex case are specified up to multiplication by e^{i phi}. "
               "The specified loss function depends on this ",
               singular ? "phase term, making it ill-defined." : "quantity, so it is ill-defined."),
       .after = "",
       .says_value = false});
  return x;
}

}  // namespace lazuli::lazy
