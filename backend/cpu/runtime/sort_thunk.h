// Sorts without a call for a comparison: keys become unsigned numbers of the same order, which a
// radix sort takes digit by digit; lines in parallel, and a long line by parts that are merged.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "backend/runtime/thunk_data.h"

namespace lazuli::cpu {

// Row-major buffers; new_buffer(bytes) makes scratch memory. Always stable. A reason for comparators
// of another form than sort_order.h knows, for types without bits of their order, and for empty
// arrays. Where NaN meets a comparison that has no place for it, the evaluator sorts.
ThunkOrReason MakeSortThunk(const hlo::Instruction& sort, const std::vector<BufferId>& operands,
                            const std::vector<BufferId>& results,
                            const std::function<BufferId(int64_t)>& new_buffer);

// Whether the thunk never reads an operand whose elements are their places in the line, an iota: what
// makes them need not run.
bool SortKnowsPlaces(const hlo::Instruction& sort, const hlo::Instruction& operand);
ThunkKind SortThunkKind();

}  // namespace lazuli::cpu
