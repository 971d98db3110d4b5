// Where the elements of a padded array go.
#pragma once

#include <algorithm>
#include <cstdint>

#include "ir/hlo/attrs.h"

namespace lazuli::hlo {

// Which elements of a dim a pad keeps, and where: `count` elements from `first` on go to positions
// `at`, `at + step`, ... of the result. Negative padding drops the others. If fewer than two are kept,
// `step` is 1, because the interior padding may be too large to compute with.
struct KeptByPad {
  KeptByPad(const PadAttrs& attrs, std::size_t d, int64_t size, int64_t result_size)
      : step((attrs.interior.empty() ? 0 : attrs.interior[d]) + 1) {
    const int64_t low = attrs.low[d];
    const auto steps = [this](int64_t n) { return n > 0 ? (n - 1) / step + 1 : 0; };
    first = steps(-low);
    count = std::max<int64_t>(0, std::min(size, steps(result_size - low)) - first);
    if (count > 0) at = low + first * step;
    if (count < 2) step = 1;
  }
  int64_t step, first = 0, count = 0, at = 0;
};

}  // namespace lazuli::hlo
