// The scalar functions that define the floating-point opcodes, written once for every device (see
// vocabulary.h).
//
// opcode.def names them as recipes::X(x[, y]). Each is a branch-free template over f32 or f64
// values, scalar or vector; integers, pred, complex numbers and the small floats are in
// scalar_ops.h.
//
// Largest errors in units in the last place, asserted by tests/ir/recipes/recipes_test.cc: 0 for
// arithmetic, rounding and sqrt; 1 for exp, log, log1p, erf, power, cbrt, sin, cos, asin, acos; 3
// for tan; 2 for the others. Signed zeros, infinities, NaN and subnormals are as in C. The methods
// are argument reductions with fma and minimax polynomials; tables.py fits those.
#pragma once

#include "ir/recipes/basic.h"
#include "ir/recipes/exp_log.h"
#include "ir/recipes/inverse.h"
#include "ir/recipes/power.h"
#include "ir/recipes/trig.h"
