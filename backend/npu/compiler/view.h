// Views: arrays in DRAM, read or written with other dims and strides than they have.
//
// HLO's changes of index (broadcast, transpose, slice, reverse, most reshapes) are views of their
// operand: nothing is copied, the strides of whoever reads say it all.
#pragma once

#include <cstdint>
#include <optional>

#include "absl/types/span.h"

#include "backend/npu/sim/types.h"
#include "ir/hlo/module.h"

namespace lazuli::npu {

struct View {
  int array = -1;
  Type type = Type::kNone;
  int64_t offset = 0;  // in elements
  Dims dims, strides;  // in elements; 0 repeats

  int64_t elements() const;
  bool Dense() const;    // row major, from the array's beginning on
  bool Repeats() const;  // an element stands for several
};

// Of a whole array, row major.
View DenseView(int array, Type type, absl::Span<const int64_t> dims);
View BroadcastView(const View& view, absl::Span<const int64_t> dims,
                   absl::Span<const int64_t> dimensions);
View TransposeView(const View& view, absl::Span<const int64_t> permutation);
View SliceView(const View& view, absl::Span<const int64_t> starts, absl::Span<const int64_t> limits,
               absl::Span<const int64_t> steps);
View ReverseView(const View& view, absl::Span<const int64_t> dimensions);
// None where the elements do not lie at strides of the new dims.
std::optional<View> ReshapeView(const View& view, absl::Span<const int64_t> dims);

// A change of index as a view of its operand; none for other instructions.
std::optional<View> ViewOf(const hlo::Instruction& instruction, const View& operand);

// The range of elements that strides reach, relative to the first one: [low, high).
struct Reach {
  int64_t low = 0, high = 1;
};
Reach ReachOf(absl::Span<const int64_t> dims, absl::Span<const int64_t> strides);

}  // namespace lazuli::npu
