// Loops and branches: their computations are programs of their own, which a thunk runs in its
// caller's buffers.
//
// A loop's state stays where it is: what an iteration leaves alone is not touched, what it can
// update in place it does, and the rest alternates between two buffers.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"

#include "backend/runtime/program.h"
#include "lowering/passes/structural_hash.h"

namespace lazuli::cpu {

// Makes a buffer of this size in the caller's program.
using NewBuffer = std::function<BufferId(int64_t bytes)>;

// What a program calls, compiled: equal computations once.
struct CompiledCallees {
  std::unique_ptr<const lowering::ComputationClasses> classes;  // made when first needed
  // By class, and whether the results replace the parameters.
  std::map<std::pair<const hlo::Computation*, bool>, std::shared_ptr<const ThunkProgram>> programs;
};

// Thunks of while and conditional. `operands` and `results` are the leaves of all operands and of
// the instruction, row major; what the callees compile to is counted in the caller's statistics.
// nullptr where the evaluator has to run it: tokens among the values, or nesting deeper than
// programs go.
absl::StatusOr<std::unique_ptr<Thunk>> MakeWhileThunk(
    const hlo::Instruction& loop, ThunkProgram& caller, CompiledCallees& compiled,
    std::vector<BufferId> operands, std::vector<BufferId> results, const NewBuffer& new_buffer);
absl::StatusOr<std::unique_ptr<Thunk>> MakeConditionalThunk(
    const hlo::Instruction& conditional, ThunkProgram& caller, CompiledCallees& compiled,
    std::vector<BufferId> operands, std::vector<BufferId> results, const NewBuffer& new_buffer);

}  // namespace lazuli::cpu
