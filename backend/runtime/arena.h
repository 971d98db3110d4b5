// PlanArena: places buffers that live at different times in the same memory.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/types/span.h"

namespace lazuli::backend {

// A buffer that holds its value from step `first` to step `last`, both included.
struct Lifetime {
  int64_t bytes = 0;
  int64_t first = 0;
  int64_t last = 0;
};

struct ArenaPlan {
  std::vector<int64_t> offsets;  // one per lifetime, multiples of 64
  int64_t bytes = 0;
};

// Best fit, largest first: each buffer takes the tightest gap among those that overlap with it in
// time. Of thousands, earliest first.
ArenaPlan PlanArena(absl::Span<const Lifetime> lifetimes);

// Every buffer in memory of its own, with at least 64 bytes of nobody behind it.
ArenaPlan PlanApart(absl::Span<const Lifetime> lifetimes);

}  // namespace lazuli::backend
