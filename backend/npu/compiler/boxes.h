// Boxes: what of a loop nest is worked on at one time.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "absl/types/span.h"

#include "ir/types/shape.h"

namespace lazuli::npu {

// A nest cut into boxes: all of the inner levels, `chunk` of one, and one of each level outside of it.
struct Boxes {
  ir::Dims dims;
  std::size_t first = 0;  // the outermost level of which a box has more than one
  int64_t chunk = 1;      // of level `first`

  // The largest boxes of at most `limit` elements and `levels` levels.
  static Boxes Cut(absl::Span<const int64_t> dims, int64_t limit, std::size_t levels);
  // Levels outside of the box, with `first` if it is cut.
  std::size_t outer() const {
    return first < dims.size() && chunk < dims[first] ? first + 1 : first;
  }
  int64_t step(std::size_t level) const { return level == first ? chunk : 1; }
  // Calls f(starts, extents) for every box: the levels of `order` from the slowest to the fastest.
  void ForEach(absl::Span<const std::size_t> order,
               const std::function<void(const ir::Dims& starts, const ir::Dims& extents)>& f) const;
};

}  // namespace lazuli::npu
