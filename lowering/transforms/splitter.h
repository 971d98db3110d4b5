// How Split works: a walk over a computation with a builder for either side.
#pragma once

#include <unordered_map>
#include <vector>

#include "lowering/transforms/split.h"

namespace lazuli::lowering {

// A part of a value is on one side.
struct SplitPart {
  Op known, linear;
  bool is_linear() const { return linear.valid(); }
};

class Splitter {
 public:
  Splitter(Builder& known_side, Builder& linear_side) : known(known_side), linear(linear_side) {}
  void AddParameters(const hlo::Computation& computation, const Mask& is_linear,
                     absl::Span<const std::optional<Literal>> constants);
  absl::Status Add(const hlo::Instruction& i);
  absl::StatusOr<SplitComputation> Finish(const hlo::Computation& computation,
                                          const Mask& linear_results);

  Builder& known;
  Builder& linear;
  Constants constants;  // of the known side

 private:
  // The value on the linear side: made there again if that is cheap, else a residual.
  Op InLinear(Op known);
  Op InLinear(const SplitPart& part) {
    return part.is_linear() ? part.linear : InLinear(part.known);
  }
  SplitPart Known(Op known);
  std::vector<SplitPart> Known(absl::Span<const Op> parts);

  // split_control.cc
  absl::StatusOr<std::vector<SplitPart>> SplitWhile(const hlo::Instruction& i,
                                                    const std::vector<SplitPart>& begin);
  absl::StatusOr<std::vector<SplitPart>> SplitConditional(
      const hlo::Instruction& i, const std::vector<std::vector<SplitPart>>& operands);
  struct CountedLoop;
  std::vector<Op> AddKnownLoop(const CountedLoop& loop);
  std::vector<Op> AddLinearLoop(const CountedLoop& loop, absl::Span<const Op> stacks);
  struct Branches;
  std::vector<Op> AddKnownBranches(const hlo::Instruction& i, const Branches& branches);
  std::vector<Op> AddLinearBranches(const hlo::Instruction& i, const Branches& branches,
                                    absl::Span<const Op> known_end);

  PartMap<SplitPart> map_;
  std::unordered_map<const hlo::Instruction*, Op> made_;       // on the known side
  std::unordered_map<const hlo::Instruction*, Op> in_linear_;  // by instruction of the known side
  std::unordered_map<const hlo::Instruction*, std::size_t> parameter_parts_;
  std::vector<Op> residuals_;
  int64_t next_parameter_ = 0;  // of the linear side
};

}  // namespace lazuli::lowering
