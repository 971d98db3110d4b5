// Programs that run others under control on the device: for as long as a condition holds, for each
// step of arrays, or one of several. Each is one HLO while or conditional, in which every other
// program is one computation.
//
// What the checks of the other programs find leaves the loop or branch, so these are checks of the
// program, too: the first value that each of them finds.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"

#include "lazy/ops/core/step_loop.h"
#include "lazy/program/program.h"

namespace lazuli::lazy {

// A parameter of a program that is the state of a generator, u32[4] (PhiloxWords), and how many
// blocks of numbers the program draws of it. Each step of a loop begins where the one before ended.
struct DrawState {
  std::size_t parameter;
  int64_t blocks;
};

// A program that is called, with the states among its parameters.
struct Part {
  ProgramPtr program;
  std::vector<DrawState> states = {};
};

// `more` takes `carried` arrays and its others and gives a pred[]; `next` takes the same arrays and
// its others and gives them anew. Parameters: the arrays, the others of `more`, those of `next`.
// Results: the arrays once `more` is false.
struct WhileParts {
  Part more, next;
  std::size_t carried;
};
absl::StatusOr<ProgramPtr> WhileProgram(const std::string& name, const WhileParts& parts);

// `step` takes `carried` arrays, an element of each of `over` arrays, and others; it gives the
// carried arrays anew, then an element of each further result. Parameters: the carried arrays,
// `over` arrays whose first dim are the steps, the others. Results: the carried arrays after all
// steps; the further results of all steps; of the carried arrays at the positions `kept`, what each
// step was given. There is no array for the positions `absent` of the `over`, which the step ignores.
struct StepParts {
  Part step;
  std::size_t carried, over;
  int64_t count;
  StepOrder order = StepOrder::kForward;
  std::vector<std::size_t> kept = {}, absent = {};
};
absl::StatusOr<ProgramPtr> StepProgram(const std::string& name, const StepParts& parts);

// The results of branch number `index`, s32[], the last one if there is none of this number.
// Parameters: the index, then those of all branches; branch i takes the ones at the positions
// takes[i] among these.
struct BranchParts {
  std::vector<ProgramPtr> branches;
  std::vector<Shape> parameters;
  std::vector<std::vector<std::size_t>> takes;
};
absl::StatusOr<ProgramPtr> BranchProgram(const std::string& name, const BranchParts& parts);

}  // namespace lazuli::lazy
