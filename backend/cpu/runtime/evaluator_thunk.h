// EvaluatorThunk: runs one instruction through ir/evaluator. The fallback for everything that has
// nothing faster.
#pragma once

#include <functional>
#include <memory>

#include "backend/cpu/runtime/thunk.h"

namespace lazuli::backend {

// Leaves of a shape in order: itself, or those of its elements.
void ForEachLeaf(const Shape& shape, const std::function<void(const Shape&)>& f);
int64_t LeafCount(const Shape& shape);

// `operands` and `results` are the leaves of all operands, and of the instruction, in order; all
// are row major. The instruction must outlive the thunk.
std::unique_ptr<Thunk> MakeEvaluatorThunk(const hlo::Instruction& instruction,
                                          std::vector<BufferId> operands,
                                          std::vector<BufferId> results);

}  // namespace lazuli::backend
