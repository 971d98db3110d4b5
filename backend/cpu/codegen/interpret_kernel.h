// A kernel without machine code: the evaluator computes the fused body on the kernel's arguments.
//
// Elementwise work and reductions have the same bits on the evaluator as in compiled kernels (rule 11 of
// docs/architecture.md), so nobody can tell from the values which of the two ran. The evaluator is slow
// per element, but it is ready at once, while LLVM needs milliseconds for the smallest kernel.
#pragma once

#include <cstddef>
#include <optional>

#include "absl/status/status.h"

#include "ir/hlo/module.h"

namespace lazuli::cpu {

// What one interpretation costs, in steps about as long as the addition of two elements. None if the
// body must be compiled, because what its interpretation costs cannot be foreseen (a loop).
std::optional<int64_t> InterpretationCost(const hlo::Computation& body);

// `args`: one pointer for each parameter, then one for each result, in the layouts of the body. Results
// may lie in the memory of parameters. No result is written before all memory is there.
absl::Status InterpretKernel(const hlo::Computation& body, std::byte* const* args);

}  // namespace lazuli::cpu
