// Results that take the memory of the parameters they replace: of such a pair one array is left, which
// the program finds and leaves.
//
// That is right only if nothing reads what the parameter was once that place has been written. A tile
// program says so: operations stand in their order, and name the bytes they touch. Where that does not
// prove it (a product that still needs the weights behind their update, rows that interleave), the
// result keeps an array of its own.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/types/span.h"

#include "backend/npu/compiler/tile_ir.h"

namespace lazuli::npu {

// The leaf of the parameters whose memory the leaf of the result may take.
struct MayReplace {
  int32_t result, parameter;
  bool operator==(const MayReplace&) const = default;
};

// The pairs that are one array now, with the parameter's name.
std::vector<MayReplace> UpdateInPlace(TileProgram& program, absl::Span<const MayReplace> pairs);

}  // namespace lazuli::npu
