// The order in which a reduction combines its elements: a function of their number alone, the same
// on every device and for any number of threads.
//
// The reduced elements of one output, in row-major order of the reduced dimensions, are x[0..n).
// They are cut into blocks of kReduceBlock. Inside a block, lane l (of kReduceLanes) folds x[l],
// x[l + lanes], ... in that order, starting from the identity; the lanes are combined as a binary
// tree: lane l with l + 4, then l + 2, then l + 1. Block results are combined as a binary tree,
// too: neighbours in pairs, then those results in pairs, and so on; one without a neighbour goes up
// as it is. Last comes f(init, total) unless init is the identity itself (bit for bit). Of no
// elements the result is init. So at most 128 + 3 + log2(n / 1024) roundings lie between an element
// and a sum.
//
// This holds for the monoids that MonoidOf (ir/hlo/monoid.h) recognises; any other reducer folds
// init, x[0], x[1], ... strictly in order. Floats of 16 bits and less accumulate in f32 and are
// rounded once. Eight lanes are one AVX2 register of f32, so rows and columns both vectorise
// without reassociation.
#pragma once

#include <cstdint>

#include "ir/hlo/monoid.h"

namespace lazuli::hlo {

inline constexpr int64_t kReduceLanes = 8;
// A step of the tree costs a store, a load and a branch that is hard to foresee: beside a block of
// 128 vectors that does not show, and a lane of 128 sums is as exact as the data in most programs.
inline constexpr int64_t kReduceBlock = 1024;

}  // namespace lazuli::hlo
