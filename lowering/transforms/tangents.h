// Forward-mode derivatives of computations: each instruction beside its tangent, by the rules of the
// table (rules.def).
//
// A tangent that is zero everywhere is absent, so nothing is computed of what does not depend on the
// inputs that have one. Integers and pred never have tangents.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "absl/types/span.h"

#include "ir/hlo/module.h"
#include "lowering/transforms/parts.h"

namespace lazuli::lowering {

// A value and its tangent, which is invalid where it is zero.
struct Dual {
  Op x, t;
  bool active() const { return t.valid(); }
};
using Duals = std::vector<Dual>;

// The parts of the root of the computation, written into b, for these parts of its parameters one
// after the other. An error, of b, names an instruction that has no rule.
Duals Differentiate(Builder& b, const hlo::Computation& computation,
                    absl::Span<const Dual> parameters);

// What a rule sees of an instruction whose operands' parts are known, one of which has a tangent.
class TangentStep {
 public:
  TangentStep(Builder& builder, const hlo::Instruction& instruction, std::vector<Duals> parts)
      : b(builder), i(instruction), operands(std::move(parts)) {}
  Builder& b;
  const hlo::Instruction& i;
  const std::vector<Duals> operands;

  // Of operands that are arrays.
  bool active(std::size_t k) const { return operands[k][0].active(); }
  Op x(std::size_t k) const { return operands[k][0].x; }
  Op t(std::size_t k) const { return operands[k][0].t; }
  Op TangentOrZeros(std::size_t k) const { return active(k) ? t(k) : b.ZerosLike(x(k)); }
  Duals AllParts() const;  // of all operands
  // The parts of the instruction's own result; it is written when first asked for.
  const std::vector<Op>& results();
  Op result() { return results()[0]; }

  // The results beside these tangents.
  Duals With(absl::Span<const Op> tangents);
  Duals With(Op tangent) { return With({&tangent, 1}); }
  Duals WithoutTangents() { return With(absl::Span<const Op>()); }
  Duals Error(const absl::Status& status);

 private:
  std::vector<Op> results_;
};

// --- rules that are no formula (tangents_*.cc)
using TangentRule = Duals (*)(TangentStep&);

// The instruction itself, applied to the tangents of all operands that can have one.
Duals LinearTangent(TangentStep& s);
Duals SumTangent(TangentStep& s);         // add
Duals DifferenceTangent(TangentStep& s);  // subtract
Duals QuotientTangent(TangentStep& s);    // divide
Duals BilinearTangent(TangentStep& s);    // in its first two operands
Duals PassTangent(TangentStep& s);        // each part of the operands is a part of the result
Duals AbsTangent(TangentStep& s);
Duals SignTangent(TangentStep& s);
Duals BitcastConvertTangent(TangentStep& s);
Duals StochasticConvertTangent(TangentStep& s);
Duals ClampTangent(TangentStep& s);
Duals RngTangent(TangentStep& s);
Duals ReduceTangent(TangentStep& s);
Duals ReduceWindowTangent(TangentStep& s);
Duals SelectAndScatterTangent(TangentStep& s);
Duals ScatterTangent(TangentStep& s);
Duals SortTangent(TangentStep& s);
Duals TopkTangent(TangentStep& s);
Duals MapTangent(TangentStep& s);
Duals BatchNormTangent(TangentStep& s);
Duals CholeskyTangent(TangentStep& s);
Duals TriangularSolveTangent(TangentStep& s);
Duals WhileTangent(TangentStep& s);
Duals ConditionalTangent(TangentStep& s);
Duals CallTangent(TangentStep& s);
Duals CustomCallTangent(TangentStep& s);
Duals AllReduceTangent(TangentStep& s);

// Of a custom call of LAPACK (lapack_*_ffi and torch_xla's names); none for other targets and routines.
std::optional<Duals> LapackTangent(TangentStep& s, std::string_view target);

// Parts of rules of linear algebra: the tangent of a Cholesky factor, and dB - op(dA) X, which a triangular
// system is to be solved for.
Op CholeskyFactorTangent(Builder& b, Op result, Op tangent, bool lower);
Op SolvedRightSide(TangentStep& s, const hlo::TriangularSolveAttrs& attrs);

}  // namespace lazuli::lowering
