// StridedView: where the elements of a value lie in the array that it is made of, through
// transposes, broadcasts, reshapes and slices.
#pragma once

#include <cstdint>
#include <vector>

#include "ir/hlo/module.h"

namespace lazuli::cpu {

struct StridedView {
  // A dimension is a list of these, the slowest first: after a reshape it may have several.
  struct Run {
    int64_t size = 1, stride = 0;
    bool operator==(const Run&) const = default;
  };
  using Axis = std::vector<Run>;

  hlo::Instruction* base = nullptr;  // row-major
  int64_t offset = 0;
  std::vector<Axis> axes;  // of the value
  double scale = 1;        // element = scale * base[...]
};

// What a view looks through: each row of these also through what the rows above it name.
enum class ViewThrough : uint8_t {
  kMoves,     // of elements
  kWidening,  // conversions of 16-bit floats to f32
  kFactors,   // products with a constant of one value
};

// All of an array, which is row-major.
StridedView WholeView(hlo::Instruction* base);
// Where a value lies in the array that it is made of.
StridedView ViewOf(hlo::Instruction* value, ViewThrough through);
// Neighbours that are one run as one, and none of size 1.
StridedView::Axis Joined(const StridedView::Axis& axis);

}  // namespace lazuli::cpu
