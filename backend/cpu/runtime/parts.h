// ForEachPart: work cut into parts, which threads take one after the other.
#pragma once

#include <cstdint>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"

#include "backend/runtime/thunk.h"

namespace lazuli::cpu {

// Threads that share `parts`: at most `threads`.
int64_t WorkersFor(int64_t parts, int64_t threads);

// Runs every part once, on `workers` threads. Who runs a part depends on how fast the others are,
// so that a thread that the system holds up does not hold up the rest. After an error no further
// parts begin; the first one is returned.
absl::Status ForEachPart(int64_t parts, int64_t workers,
                         absl::FunctionRef<absl::Status(Part part)> body);

}  // namespace lazuli::cpu
