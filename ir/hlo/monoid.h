// Reducers that are monoids: which opcode a reducer applies, and that opcode's identity.
//
// Reductions by a monoid have a fixed order that vectorises (ir/evaluator/reduction_order.h);
// builders start them from the identity, which then need not be combined at all.
#pragma once

#include <optional>

#include "ir/hlo/module.h"

namespace lazuli::hlo {

// The opcode of a reducer `(a, b) -> op(a, b)` that is add, multiply, maximum, minimum, and, or,
// xor on its two scalar parameters, in either order; nullopt for anything else.
std::optional<Opcode> MonoidOf(const Computation& reducer);

// Its identity as a scalar: 0, 1, lowest (-inf where the type has it), highest, all ones, 0, 0. For
// add of floats it is +0, as frameworks write it, although only -0 + x == x holds for every x.
Literal IdentityOf(Opcode monoid, DType dtype);

// The type in which values of a type accumulate, here and in sums of products: f32 for floats of 16
// bits and less, else the type itself.
DType AccumulationType(DType dtype);

}  // namespace lazuli::hlo
