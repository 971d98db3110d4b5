// Loops of a formula that run until all elements are done.
#pragma once

#include "lazy/ops/core/dims.h"
#include "lazy/ops/core/step_loop.h"
#include "lazy/ops/elementwise/in_double.h"

namespace lazuli::lazy {

// The arrays, which begin as `begin`, after f made them from those before for as long as `more` of
// them held for some element. more(b, w, arrays) gives a pred array with the dims of the first one,
// f(b, w, arrays) the next arrays; w makes numbers in the shape and the dtype of the first one.
template <class More, class Step>
lowering::Ops LoopWhile(lowering::Builder& builder, absl::Span<const lowering::Op> begin,
                        More&& more, Step&& f) {
  const auto some = [&](lowering::Builder& b, const lowering::Ops& at) {
    Dims dims;
    for (int64_t d = 0; d < at[0].rank(); ++d) dims.push_back(d);
    return b.Reduce(lowering::Opcode::kOr, more(b, Wide64{b, at[0]}, at), dims);
  };
  const auto next = [&](lowering::Builder& b, const lowering::Ops& at) {
    return f(b, Wide64{b, at[0]}, at);
  };
  return RepeatWhile(builder, begin, some, next);
}

}  // namespace lazuli::lazy
