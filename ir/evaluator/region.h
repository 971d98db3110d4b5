// A computation on scalars (a reducer, a comparator, a map's function), prepared to run many times.
//
// Runs `lanes` independent evaluations at once: a lane is one element of every argument array. If
// the computation consists of elementwise instructions, each costs one loop over the lanes and
// nothing else; otherwise every lane is interpreted.
#pragma once

#include <vector>

#include "absl/status/status.h"

#include "ir/evaluator/kernels.h"

namespace lazuli::hlo {

class Evaluation;

class RegionEvaluator {
 public:
  // The computation and the evaluation must outlive the region.
  RegionEvaluator(const Computation& computation, int64_t max_lanes, Evaluation& evaluation);

  // Arguments and results are arrays of `lanes` elements, one for each parameter and for each
  // element of the root tuple (or the root). A result may be the memory of an argument.
  absl::Status Run(absl::Span<const std::byte* const> arguments,
                   absl::Span<std::byte* const> results, int64_t lanes);

 private:
  struct KernelStep {
    const Instruction* instruction;
    Kernel kernel;
    absl::InlinedVector<int, 3> operands;  // slots
    int result;
  };
  // Gives every instruction its slot; false if one of them is not elementwise.
  bool Prepare(int64_t max_lanes);
  absl::Status Interpret(absl::Span<const std::byte* const> arguments,
                         absl::Span<std::byte* const> results, int64_t lanes);

  const Computation& computation_;
  Evaluation& evaluation_;
  bool straight_;
  std::vector<KernelStep> steps_;
  std::vector<Literal> memory_;              // of constants and intermediate values, by slot
  std::vector<const std::byte*> addresses_;  // by slot; of parameters, set by each run
  std::vector<int> parameters_;              // slots
  std::vector<int> roots_;
  std::vector<int> widths_;  // of the roots' elements
};

}  // namespace lazuli::hlo
