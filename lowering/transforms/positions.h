// Elements by their positions: what forward and reverse rules of windows, scatters and sorts share.
#pragma once

#include "ir/hlo/attrs.h"
#include "lowering/builder/builder.h"

namespace lazuli::lowering {

// x with the elements that the positions s32 (those along `dimension`) name: torch.take_along_dim.
Op TakeAlong(Builder& b, Op x, Op positions, int64_t dimension);

// For each window of x the row-major position, s32, of the element that `select` keeps, the first of
// equal ones; as many as x has elements where a window lies in the padding. The second form takes
// select-and-scatter's computation.
Op ExtremePositions(Builder& b, Op x, const hlo::Window& window, Opcode monoid);
Op SelectedPositions(Builder& b, Op x, const hlo::Window& window, hlo::Computation& select);
// The elements of x at row-major positions, 0 where a position is none of x.
Op ElementsAt(Builder& b, Op x, Op positions);

// What scatter with these attributes would add up to, the other way round: for each update the element
// of x at its place, 0 where scatter would leave it out.
Op GatherWhereScattered(Builder& b, Op x, Op indices, const Shape& updates,
                        const hlo::ScatterAttrs& attrs);
// pred of the updates' shape: scatter takes it, for its place is inside of the operand.
Op IsScattered(Builder& b, const Shape& operand, Op indices, const Shape& updates,
               const hlo::ScatterAttrs& attrs);
// The indices of a gather as it takes them: moved so that each slice lies inside of the operand.
Op ClampedIndices(Builder& b, const Shape& operand, Op indices, const hlo::GatherAttrs& attrs);
// The scatter that puts slices where the gather takes them from.
hlo::ScatterAttrs ScatterOf(const hlo::GatherAttrs& attrs);

}  // namespace lazuli::lowering
