// What the updates of many tensors are lowered with.
#pragma once

#include <initializer_list>

#include "ir/support/pool.h"
#include "lazy/ops/core/accepts.h"
#include "lazy/ops/core/op.h"
#include "lazy/ops/core/wide.h"
#include "lowering/builder/builder.h"

namespace lazuli::lazy::foreach_internal {

using lowering::Builder;
using lowering::Op;
using lowering::Opcode;
using Results = PooledVector<Op>;

// The operands of an update in order: numbers, then `lists` lists of equal length.
class Operands {
 public:
  Operands(absl::Span<const Op> in, std::size_t numbers, std::size_t lists)
      : in_(in), at_(numbers), length_((in.size() - numbers) / lists) {}
  Op Number() { return in_[next_number_++]; }
  absl::Span<const Op> List() {
    const absl::Span<const Op> list = in_.subspan(at_, length_);
    at_ += length_;
    return list;
  }
  std::size_t length() const { return length_; }

 private:
  absl::Span<const Op> in_;
  std::size_t next_number_ = 0, at_, length_;
};

// Arithmetic of elements with numbers.
class Arithmetic {
 public:
  explicit Arithmetic(Builder& b) : b(b) {}
  Op Spread(Op number, Op beside) const {
    const Shape& shape = beside.shape();
    return shape.rank() == 0 ? number : b.Broadcast(number, shape.dims(), {});
  }
  Op Times(Op x, Op number) const { return b.Times(x, Spread(number, x)); }
  Op Plus(Op x, Op number) const { return b.Plus(x, Spread(number, x)); }
  Op DividedBy(Op x, Op number) const { return b.DividedBy(x, Spread(number, x)); }
  Op Sqrt(Op x) const { return b.Unary(Opcode::kSqrt, x); }
  // The gradient of what shall become smaller.
  Op Descent(Op gradient, bool maximize) const {
    return maximize ? b.Unary(Opcode::kNegate, gradient) : gradient;
  }
  // x + weight * (y - x), as lerp.
  Op Toward(Op x, Op y, Op weight) const { return b.Plus(x, Times(b.Minus(y, x), weight)); }
  // x * keep + weight * g * g, as mul_ and addcmul_.
  Op DecayedSquares(Op x, Op keep, Op g, Op weight) const {
    return b.Plus(Times(x, keep), b.Times(Times(g, weight), g));
  }

  Builder& b;
};

// An update moves the real and the imaginary part of a complex number as two numbers, as torch's do.
// Complex operands as reals, with the two parts along a new last dim; numbers as their real parts.
Results AsReals(Builder& b, absl::Span<const Op> in, std::size_t numbers);
// And back.
Results AsComplex(Builder& b, absl::Span<const Op> reals);
template <class U>
Results LowerOnReals(const U& update, Builder& b, absl::Span<const Op> in, std::size_t numbers) {
  return AsComplex(b, update.Lower(b, AsReals(b, in, numbers)));
}

// An update of floats of 16 bits is computed in f32, which its numbers have, and rounded once.
inline bool IsRounded(absl::Span<const Op> in) { return IsNarrow(in.back().dtype()); }
template <class U>
Results LowerWide(const U& update, Builder& b, absl::Span<const Op> in) {
  Results wide;
  for (Op x : in) wide.push_back(Wide(x));
  Results results = update.Lower(b, wide);
  for (Op& x : results) x = b.Convert(x, in.back().dtype());
  return results;
}

// The shapes of updated parameters and `states` lists, of which the last `made` are like the
// parameters and no operands. False, with nothing added, for dtypes that an update may refuse.
bool InferUpdate(absl::Span<const Value> in, std::size_t numbers, std::size_t states,
                 std::size_t made, Shapes& out);

// Lists one after the other.
inline Results Concatenated(std::initializer_list<const Results*> lists) {
  Results all;
  for (const Results* list : lists) all.insert(all.end(), list->begin(), list->end());
  return all;
}

}  // namespace lazuli::lazy::foreach_internal
