// The part of an array under a box of windows, in the scratchpad, and vector programs over boxes.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "backend/npu/compiler/builder.h"
#include "backend/npu/compiler/expression.h"
#include "ir/hlo/module.h"

namespace lazuli::npu {

struct WindowPart {
  Dims extents, strides;     // in the scratchpad
  Dims loaded, near, far;    // what of it there is: dims, and strides on both sides
  int64_t to = 0, from = 0;  // its first element
  bool holes = false, empty = false;
  int64_t elements() const;
};
// starts, counts: of windows; a window for each dim of x.
WindowPart PartUnder(const hlo::Window& window, const View& x, const Dims& starts,
                     const Dims& counts);
// Into a new buffer, with the bits of `padding` where there is nothing.
int LoadPart(const WindowPart& part, const View& x, uint32_t padding, TileBuilder& builder);

// A vector program, which one run is enough for, over all elements of a box. With a reduction (TileBuilder::Vector) levels
// along which the result has a stride of 0 are reduced.
void RunOver(TileBuilder& builder, const Dims& counts, std::vector<TileBuilder::Stream> inputs,
             TileBuilder::Stream out, const Expression& expression, int root, int reduction = -1);

// f(expression, nodes of the inputs) is the root.
template <class F>
void RunOver(TileBuilder& builder, const Dims& counts, std::vector<TileBuilder::Stream> inputs,
             TileBuilder::Stream out, F f, int reduction = -1) {
  Expression e;
  std::vector<int> nodes;
  for (std::size_t s = 0; s < inputs.size(); ++s)
    nodes.push_back(e.Load(static_cast<int>(s), inputs[s].type));
  const int root = f(e, nodes);
  RunOver(builder, counts, std::move(inputs), std::move(out), e, root, reduction);
}

}  // namespace lazuli::npu
