// Convolutions by implementations that multiply the zeros of padding, as those by matrices do: an
// infinite or NaN factor would make NaN of what adds nothing.
#pragma once

#include <memory>

#include "backend/cpu/runtime/library.h"

namespace lazuli::cpu {

// `fast` unless what it gives may be wrong for that reason, and then `exact`, whose a and b are the
// convolution's operands. Both are of f32. To see it, the factors are looked at, or the result if
// that has fewer elements. The weights of `fast` are not packed.
struct PaddingGuard {
  std::shared_ptr<const LibraryCall> fast, exact;
  bool swapped = false;  // a and b of `fast` are the operands the other way round
  int64_t factors = 0, results = 0;
};
std::shared_ptr<const LibraryCall> MakePaddingGuard(PaddingGuard guard);

}  // namespace lazuli::cpu
