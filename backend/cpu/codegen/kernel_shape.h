// KernelShape: all that a thunk must know of a compiled kernel but its code.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ir/support/attrs.h"

namespace lazuli::cpu {

// How to run a compiled kernel: `name`(args, begin, end) over [0, items) in any cut, then if
// finish_items > 0 `name`_finish(args, begin, end) over [0, finish_items).
struct KernelShape {
  int64_t items = 1;
  int64_t grain = 1;  // items worth a thread
  int64_t finish_items = 0;
  int64_t scratch_bytes = 0;
  std::vector<uint8_t> in_place;  // by parameter: outputs may lie in its memory
  // Indices of the results' outermost dimension in memory, if items enumerate it first; else 0. Any
  // divisor of them is a number of parts (Thunk::CanSplit).
  int64_t outermost = 0;
  std::vector<uint8_t> by_part;  // by parameter: it falls into those parts, too
  // What generic code reads as its last argument (codegen/generic_form.h); empty for code of this size alone.
  std::vector<int64_t> numbers;
  std::string details;
  LAZULI_ATTRS(items, grain, finish_items, scratch_bytes, in_place, outermost, by_part, numbers,
               details);
};

}  // namespace lazuli::cpu
