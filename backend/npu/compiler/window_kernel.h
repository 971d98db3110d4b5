// Windows that slide over arrays: reduce-window and select-and-scatter, on the vector unit.
//
// A box of windows needs a part of the array, which is loaded once, with what padding stands for around it. One tap of all windows is
// then a stream over it: its strides are those of the windows, its first element is the tap. So a window of w taps is w streams,
// joined one after the other in the order of the taps.
#pragma once

#include <cstdint>

#include "backend/npu/compiler/vector_kernel.h"
#include "ir/hlo/module.h"

namespace lazuli::npu {

struct WindowKernel {
  hlo::Window window;
  View x;       // the array
  View result;  // of reduce-window: one element a window; of select-and-scatter: as the array
  View init;    // a scalar
};

// `identity`: bits of the reduction's, which stand for padding; the result is init joined with the taps in order.
void EmitReduceWindow(const WindowKernel& kernel, Reduction reduction, uint32_t identity,
                      bool init_is_identity, TileBuilder& builder);

// `keeps`: the region that keeps an element against a later one. `source`: an element for each window, which `joins` adds to
// what is at the chosen place. The result holds init everywhere before.
void EmitSelectAndScatter(const WindowKernel& kernel, const View& source,
                          const hlo::Computation& keeps, Micro joins, TileBuilder& builder);
// Whether windows that overlap fit the scratchpad together; `windows` is the shape of the source.
bool SelectAndScatterFits(const hlo::Window& window, const Shape& windows, const Config& config);

}  // namespace lazuli::npu
