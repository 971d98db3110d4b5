// The operands of the ops of recurrent layers, by name: those that a layer lacks are undefined.
#pragma once

#include "lazy/ops/recurrent/recurrent.h"

namespace lazuli::lazy {

// Takes operands one after the other.
template <class V>
class Taker {
 public:
  explicit Taker(absl::Span<const V> in) : in_(in) {}
  V Next() { return in_[next_++]; }
  V NextIf(bool wanted) { return wanted ? Next() : V(); }
  absl::Span<const V> Rest() const { return in_.subspan(next_); }

 private:
  absl::Span<const V> in_;
  std::size_t next_ = 0;
};

template <class V>
struct RecurrentOperands {
  V sums, weight, hidden, cell, bias, projection, lengths;
  RecurrentOperands(const RecurrentOp& op, absl::Span<const V> in) {
    Taker<V> take(in);
    sums = take.Next();
    weight = take.Next();
    hidden = take.Next();
    cell = take.NextIf(op.cell == Cell::kLstm);
    bias = take.NextIf(op.cell == Cell::kGru);
    projection = take.NextIf(op.projected);
    lengths = take.NextIf(op.masked);
  }
};

}  // namespace lazuli::lazy
