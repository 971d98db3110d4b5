// Weight: the measure that every rule makes less, which is why rewriting ends.
//
// The weight of a value is a natural number and grows with the weight of each operand:
//
//   constant                             1
//   parameter, iota, ...                 4
//   reshape, broadcast, tuple, ...       1 + operands         what only renames elements
//   slice                                2 + operands
//   transpose                            3 + operands         may become a reshape
//   pad, dynamic-slice, conditional, ... 4 + operands         may become a slice, a call
//   elementwise                          1 + 2 x operands     so broadcasts rise above it
//   divide                               8 + 2 x operands     may become a multiply
//   reduce, sort, dot, all else          16 + 2 x operands    may become an elementwise
//
// and one more for a constant on the left of something that is none, which belongs on the right.
//
// A rule replaces a value by a lighter one. Its users become lighter, too (an operand that turns
// into a constant on the left costs one, and is lighter by at least one, twice); what the rule adds
// is lighter than what it replaces. So the weights of a computation's values, as a multiset, sink
// in an order without infinite descents, whatever the order of the rewrites and whichever rules are
// on. How often a value is used does not count: two users of one operand weigh as two operands.
#pragma once

#include "ir/hlo/dense_map.h"
#include "ir/hlo/module.h"

namespace lazuli::lowering {

// The weight of every instruction of a computation. Linear; exact below 2^53.
hlo::DenseMap<double> WeightsOf(const hlo::Computation& computation);

}  // namespace lazuli::lowering
