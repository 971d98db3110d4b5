// EvaluatorThunk: runs one instruction through ir/evaluator. The fallback for everything that has
// nothing faster.
#pragma once

#include <memory>

#include "backend/runtime/thunk_data.h"

namespace lazuli::backend {

// `operands` and `results` are the leaves of all operands, and of the instruction, in order; all
// are row major. The instruction must outlive the thunk.
std::unique_ptr<Thunk> MakeEvaluatorThunk(const hlo::Instruction& instruction,
                                          std::vector<BufferId> operands,
                                          std::vector<BufferId> results);
ThunkKind EvaluatorThunkKind();

}  // namespace lazuli::backend
