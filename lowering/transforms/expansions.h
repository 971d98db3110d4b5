// Instructions in terms of those that have rules: computations of the same results for the same
// operands, with a flat result.
#pragma once

#include "absl/status/statusor.h"

#include "ir/hlo/module.h"

namespace lazuli::lowering {

// Halves of an array combined with each other until one element is left: any associative reducer of
// elementwise instructions, of any number of arrays.
absl::StatusOr<hlo::Computation*> ExpandReduce(hlo::Module& module, const hlo::Instruction& reduce);
// The elements of windows, one strided slice for each position in a window.
absl::StatusOr<hlo::Computation*> ExpandReduceWindow(hlo::Module& module,
                                                     const hlo::Instruction& reduce_window);
absl::StatusOr<hlo::Computation*> ExpandMap(hlo::Module& module, const hlo::Instruction& map);
// batch-norm-training, -inference and -grad.
absl::StatusOr<hlo::Computation*> ExpandBatchNorm(hlo::Module& module,
                                                  const hlo::Instruction& batch_norm);

}  // namespace lazuli::lowering
