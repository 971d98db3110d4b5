// Tangent rules of factorisations and triangular systems.
#include <utility>

#include "lowering/transforms/formula.h"
#include "lowering/transforms/matrices.h"
#include "lowering/transforms/tangents.h"

namespace lazuli::lowering {

// A = L L^H, so dL = L F(L^-1 dA L^-H), where F takes the lower triangle and half of the diagonal.
// Of A the instruction reads one triangle.
Op CholeskyFactorTangent(Builder& b, Op result, Op tangent, bool lower) {
  const auto lowered = [&](Op m) { return lower ? m : Adjoint(b, m); };
  const Op factor = Triangle(b, lowered(result), /*lower=*/true, /*strict=*/false);
  const Op given = lowered(tangent);
  const Value half = Triangle(b, given, /*lower=*/true, /*strict=*/true);
  const Value diagonal = As(RealPart(Diagonal(b, given)), given.dtype());
  const Value da = half + Adjoint(b, half.op) + diagonal;
  const hlo::TriangularSolveAttrs left{.left_side = true, .lower = true};
  hlo::TriangularSolveAttrs right = left;
  right.left_side = false;
  right.transpose_a = hlo::TransposeKind::kAdjoint;
  const Op solved = b.Add(Opcode::kTriangularSolve, {factor, da.op}, left);
  const Value inner = b.Add(Opcode::kTriangularSolve, {factor, solved}, right);
  const Value phi = Value(Triangle(b, inner.op, /*lower=*/true, /*strict=*/true)) +
                    0.5 * Value(Diagonal(b, inner.op));
  return lowered(MatrixProduct(b, factor, phi.op));
}

Duals CholeskyTangent(TangentStep& s) {
  const bool lower = s.i.attrs_as<hlo::CholeskyAttrs>().lower;
  return s.With(CholeskyFactorTangent(s.b, s.result(), s.t(0), lower));
}

// op(A) X = B, so dX = op(A)^-1 (dB - op(dA) X), of the triangle of A that the instruction reads.
Op SolvedRightSide(TangentStep& s, const hlo::TriangularSolveAttrs& attrs) {
  Op right_side = s.t(1);
  if (s.active(0)) {
    const Op da = Triangle(s.b, s.t(0), attrs.lower, /*strict=*/attrs.unit_diagonal);
    const Op turned = attrs.transpose_a == hlo::TransposeKind::kNoTranspose ? da
                      : attrs.transpose_a == hlo::TransposeKind::kTranspose
                          ? MatrixTranspose(s.b, da)
                          : Adjoint(s.b, da);
    const Value product = attrs.left_side ? MatrixProduct(s.b, turned, s.result())
                                          : MatrixProduct(s.b, s.result(), turned);
    right_side = right_side.valid() ? (Value(right_side) - product).op : (-product).op;
  }
  return right_side;
}

Duals TriangularSolveTangent(TangentStep& s) {
  const auto& attrs = s.i.attrs_as<hlo::TriangularSolveAttrs>();
  return s.With(AddLike(s.b, s.i, {s.x(0), SolvedRightSide(s, attrs)}));
}

}  // namespace lazuli::lowering
