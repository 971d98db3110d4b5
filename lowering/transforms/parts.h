// Values as their parts: the arrays and tokens of a value, in the order of a walk through its tuples.
//
// Rules of transforms see parts only, so that a part of a tuple can have what another lacks: a
// tangent, a batch dimension. Tuples are made again where an instruction takes one.
#pragma once

#include <cstddef>
#include <unordered_map>
#include <vector>

#include "absl/types/span.h"

#include "ir/hlo/module.h"
#include "lowering/builder/builder.h"

namespace lazuli::lowering {

// Arrays and tokens of the shape.
std::vector<Shape> PartsOf(const Shape& shape);
std::size_t PartCount(const Shape& shape);
// Parts of the elements of a tuple that come before this one.
std::size_t PartsBefore(const Shape& tuple, int64_t element);

std::vector<Op> PartsOf(Builder& b, Op value);
// The value of this shape that has the first of these parts, which are taken off.
Op FromParts(Builder& b, const Shape& shape, absl::Span<const Op>& parts);
inline Op WholeOf(Builder& b, const Shape& shape, absl::Span<const Op> parts) {
  return FromParts(b, shape, parts);
}

// Whether arrays of the shape have tangents: floats and complex numbers.
bool HasTangents(const Shape& shape);

// An instruction like `i` (opcode, attributes, sharding) with these operands. It calls what `i` calls, or
// these computations.
Op AddLike(Builder& b, const hlo::Instruction& i, absl::Span<const Op> operands);
Op AddLike(Builder& b, const hlo::Instruction& i, absl::Span<const Op> operands,
           absl::Span<hlo::Computation* const> called);
// The same with the parts of operands; gives the parts of the result.
std::vector<Op> AddLikeOfParts(Builder& b, const hlo::Instruction& i,
                               absl::Span<const std::vector<Op>> operands);

// A flag per part of a value.
using Mask = std::vector<bool>;
// The parts that either mask names; y may lack parts at the end.
Mask Union(Mask x, const Mask& y);

// What is known of the parts of each instruction, by instruction.
template <class T>
class PartMap {
 public:
  std::vector<T>& operator[](const hlo::Instruction* i) { return parts_[i]; }
  const std::vector<T>& at(const hlo::Instruction* i) const { return parts_.at(i); }
  std::vector<std::vector<T>> OfOperands(const hlo::Instruction& i) const {
    std::vector<std::vector<T>> all;
    for (const hlo::Instruction* operand : i.operands()) all.push_back(at(operand));
    return all;
  }
  // The parts of the computation's parameters, one parameter after the other.
  template <class Values>
  void AddParameters(const hlo::Computation& computation, const Values& parts) {
    auto next = parts.begin();
    for (const hlo::Instruction* parameter : computation.parameters()) {
      const auto end = next + static_cast<std::ptrdiff_t>(PartCount(parameter->shape()));
      parts_[parameter].assign(next, end);
      next = end;
    }
  }
  // Tuples and their elements: whether `i` is one.
  bool Route(const hlo::Instruction& i) {
    if (i.opcode() == Opcode::kTuple) {
      std::vector<T> all;
      for (const hlo::Instruction* operand : i.operands())
        all.insert(all.end(), at(operand).begin(), at(operand).end());
      parts_[&i] = std::move(all);
      return true;
    }
    if (i.opcode() != Opcode::kGetTupleElement) return false;
    const std::vector<T>& tuple = at(i.operand(0));
    const auto first =
        tuple.begin() + static_cast<std::ptrdiff_t>(PartsBefore(
                            i.operand(0)->shape(), i.attrs_as<hlo::TupleIndexAttrs>().index));
    const auto count = static_cast<std::ptrdiff_t>(PartCount(i.shape()));
    parts_[&i] = std::vector<T>(first, first + count);
    return true;
  }

 private:
  std::unordered_map<const hlo::Instruction*, std::vector<T>> parts_;
};

// The parts of the root of the computation, written into b, for these parts of its parameters one
// after the other. Parts that nothing reads may be invalid.
std::vector<Op> CopyInto(Builder& b, const hlo::Computation& computation,
                         absl::Span<const Op> parameters);

// The result of a computation on scalars at each position of arrays of equal dims. An error names an
// instruction that is not elementwise.
std::vector<Op> CopyElementwise(Builder& b, const hlo::Computation& scalar,
                                absl::Span<const Op> parameters, absl::Span<const int64_t> dims);

}  // namespace lazuli::lowering
