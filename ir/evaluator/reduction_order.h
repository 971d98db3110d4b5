// The order in which a reduction combines its elements: a function of their number alone, the same
// on every device.
//
// The reduced elements of one output, in row-major order of the reduced dimensions, are x[0..n).
// They are cut into blocks of kReduceBlock. Inside a block, lane l (of kReduceLanes) folds x[l],
// x[l + lanes], ... in that order, starting from the identity; the lanes are combined as a binary
// tree: lane l with l + 4, then l + 2, then l + 1. Block results are folded in order, starting from
// the first; last comes f(init, total) unless init is the identity itself (bit for bit). Of no
// elements the result is init. This holds for the monoids that MonoidOf (ir/hlo/monoid.h)
// recognises; any other reducer folds init, x[0], x[1], ... strictly in order. Floats of 16 bits
// and less accumulate in f32 and are rounded once. Eight lanes are one AVX2 register of f32, so
// rows and columns both vectorise without reassociation.
#pragma once

#include <cstdint>

#include "ir/hlo/monoid.h"

namespace lazuli::hlo {

inline constexpr int64_t kReduceLanes = 8;
inline constexpr int64_t kReduceBlock = 1024;

}  // namespace lazuli::hlo
