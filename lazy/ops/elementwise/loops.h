// Loops of a formula in f64 that run until all elements are done.
#pragma once

#include <vector>

#include "lazy/ops/core/dims.h"
#include "lazy/ops/elementwise/in_double.h"

namespace lazuli::lazy {

// The state, a tuple of arrays that begin as `begin`, after f of it so long as `more` of it holds for
// some element. more(b, w, state) gives a pred array, f(b, w, state) the next state; w writes numbers
// in the shape of the first array, which is f64.
template <class More, class Step>
lowering::Op LoopWhile(lowering::Builder& builder, absl::Span<const lowering::Op> begin,
                       More&& more, Step&& f) {
  std::vector<Shape> shapes;
  for (const lowering::Op& array : begin) shapes.push_back(array.shape());
  const Shape state = Shape::Tuple(shapes);
  const auto elements = [&](lowering::Builder& b, lowering::Op s) {
    lowering::Ops all;
    for (std::size_t i = 0; i < shapes.size(); ++i)
      all.push_back(b.GetTupleElement(s, static_cast<int64_t>(i)));
    return all;
  };
  hlo::Computation* left = builder.Region("left", {state}, [&](lowering::Builder& b, auto s) {
    Dims dims;
    for (int64_t d = 0; d < shapes[0].rank(); ++d) dims.push_back(d);
    const lowering::Ops at = elements(b, s[0]);
    return b.Reduce(lowering::Opcode::kOr, more(b, Wide64{b, at[0]}, at), dims);
  });
  hlo::Computation* step = builder.Region("step", {state}, [&](lowering::Builder& b, auto s) {
    const lowering::Ops at = elements(b, s[0]);
    return b.Tuple(f(b, Wide64{b, at[0]}, at));
  });
  return builder.While(builder.Tuple(begin), left, step);
}

}  // namespace lazuli::lazy
