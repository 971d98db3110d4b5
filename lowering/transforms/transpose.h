// Linear computations the other way round: from cotangents of results to those of inputs.
//
// The products of values and cotangents, added up, stay the same: sum(c * f(t)) = sum(f'(c) * t).
// Complex numbers are not conjugated; of a real value's product the real part counts.
#pragma once

#include <vector>

#include "absl/status/statusor.h"

#include "lowering/transforms/dependence.h"

namespace lazuli::lowering {

// The computation that takes the parts of the parameters that are not linear, one parameter each, then a
// cotangent for each part of the result that `results` names; its result is a flat tuple of the cotangents
// of the linear parts. `linear` names the parts of the parameters in which the computation is linear. An
// error names an instruction that is not, or that has no rule.
absl::StatusOr<hlo::Computation*> Transpose(hlo::Module& module,
                                            const hlo::Computation& computation, const Mask& linear,
                                            const Mask& results);

// A part of a value: known, or one that a cotangent belongs to.
struct LinearPart {
  Op known;
  std::size_t slot = 0;
  bool is_linear() const { return !known.valid(); }
};

// Cotangents on their way to the inputs.
class Cotangents {
 public:
  explicit Cotangents(Builder& builder) : b(builder) {}
  std::size_t NewSlot(const Shape& shape) {
    slots_.push_back({shape, {}});
    return slots_.size() - 1;
  }
  const Shape& shape(std::size_t slot) const { return slots_[slot].shape; }
  Op of(std::size_t slot) const { return slots_[slot].sum; }  // invalid: zero
  Op OrZeros(std::size_t slot) const {
    return of(slot).valid() ? of(slot) : b.Full(shape(slot).WithDefaultLayout(), 0);
  }
  void Set(std::size_t slot, Op sum) { slots_[slot].sum = sum; }
  void Add(std::size_t slot, Op term) {
    Op& sum = slots_[slot].sum;
    sum = sum.valid() ? b.Plus(sum, term) : term;
  }

  Builder& b;

 private:
  struct Slot {
    Shape shape;
    Op sum;
  };
  std::vector<Slot> slots_;
};

// What a rule sees of an instruction with a linear operand, whose result has cotangents.
class TransposeStep {
 public:
  Builder& b;
  const hlo::Instruction& i;
  Cotangents& cotangents;
  const std::vector<std::vector<LinearPart>> operands;
  const std::vector<LinearPart> results;
  const Constants& constants;

  // Of operands that are arrays.
  bool linear(std::size_t k) const { return operands[k][0].is_linear(); }
  const Shape& shape(std::size_t k) const { return i.operand(static_cast<int64_t>(k))->shape(); }
  Op x(std::size_t k) const { return operands[k][0].known; }
  std::vector<Op> KnownFrom(std::size_t k) const;  // operands k, k + 1, ..., all known
  // The one cotangent of the result.
  Op ct() const { return cotangents.OrZeros(results[0].slot); }
  // Adds to the cotangent of an operand; nothing where it is not linear.
  void Give(std::size_t k, Op term) {
    if (linear(k)) cotangents.Add(operands[k][0].slot, term);
  }
  // The cotangent of an operand so far, or zeros, for rules that change a part of it in place.
  Op Taken(std::size_t k) const { return cotangents.OrZeros(operands[k][0].slot); }
  void Replace(std::size_t k, Op sum) { cotangents.Set(operands[k][0].slot, sum); }
  absl::Status NotLinear() const;
};

using TransposeRule = absl::Status (*)(TransposeStep&);

absl::Status TransposeSame(TransposeStep& s);  // the instruction, applied to the cotangent
absl::Status TransposePass(
    TransposeStep& s);  // each part of the first operand is one of the result
absl::Status TransposeCustomCall(TransposeStep& s);
absl::Status TransposeNegate(TransposeStep& s);
absl::Status TransposeReal(TransposeStep& s);
absl::Status TransposeImag(TransposeStep& s);
absl::Status TransposeConvert(TransposeStep& s);
absl::Status TransposeAdd(TransposeStep& s);
absl::Status TransposeSubtract(TransposeStep& s);
absl::Status TransposeMultiply(TransposeStep& s);
absl::Status TransposeDivide(TransposeStep& s);
absl::Status TransposeComplex(TransposeStep& s);
absl::Status TransposeSelect(TransposeStep& s);
absl::Status TransposeBroadcast(TransposeStep& s);
absl::Status TransposeTranspose(TransposeStep& s);
absl::Status TransposeReshape(TransposeStep& s);
absl::Status TransposeConcatenate(TransposeStep& s);
absl::Status TransposeSlice(TransposeStep& s);
absl::Status TransposePad(TransposeStep& s);
absl::Status TransposeDynamicSlice(TransposeStep& s);
absl::Status TransposeDynamicUpdateSlice(TransposeStep& s);
absl::Status TransposeGather(TransposeStep& s);
absl::Status TransposeScatter(TransposeStep& s);
absl::Status TransposeDot(TransposeStep& s);
absl::Status TransposeConvolution(TransposeStep& s);
absl::Status TransposeFft(TransposeStep& s);
absl::Status TransposeTriangularSolve(TransposeStep& s);
absl::Status TransposeReduce(TransposeStep& s);
absl::Status TransposeReduceWindow(TransposeStep& s);
absl::Status TransposeSelectAndScatter(TransposeStep& s);
absl::Status TransposeAllReduce(TransposeStep& s);
absl::Status TransposeAllGather(TransposeStep& s);
absl::Status TransposeReduceScatter(TransposeStep& s);
absl::Status TransposeAllToAll(TransposeStep& s);
absl::Status TransposeCollectivePermute(TransposeStep& s);
absl::Status TransposeWhile(TransposeStep& s);
absl::Status TransposeConditional(TransposeStep& s);

}  // namespace lazuli::lowering
