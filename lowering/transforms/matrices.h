// Batches of matrices, in the last two dimensions of arrays.
#pragma once

#include "lowering/builder/builder.h"

namespace lazuli::lowering {

Op MatrixTranspose(Builder& b, Op m);
Op Adjoint(Builder& b, Op m);  // transposed and conjugated
Op MatrixProduct(Builder& b, Op x, Op y);
// One triangle, with its diagonal unless it is strict; zeros elsewhere.
Op Triangle(Builder& b, Op m, bool lower, bool strict);
Op Diagonal(Builder& b, Op m);  // zeros elsewhere

}  // namespace lazuli::lowering
