// Householder reflectors as loops of plain instructions, for what differentiates LAPACK's geqrf and orgqr: the same
// values by the same formulas, so they have the same signs.
#pragma once

#include "ir/hlo/module.h"
#include "lowering/builder/builder.h"

namespace lazuli::lowering {

// Computations in b's module. Takes matrices [..., m, n]; gives R with the reflectors' vectors below its
// diagonal, and their factors [..., min(m, n)].
hlo::Computation* HouseholderFactors(Builder& b, const Shape& matrices);
// Takes vectors below the diagonal [..., m, n] and factors [..., k]; gives the first n columns of the product of
// the reflectors I - factor v v^H.
hlo::Computation* HouseholderProduct(Builder& b, const Shape& vectors, const Shape& factors);

}  // namespace lazuli::lowering
