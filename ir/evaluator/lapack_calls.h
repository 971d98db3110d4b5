// Custom calls of linear algebra: the targets lapack_*_ffi that JAX emits, and Qr, Eigh and
// ProductOfElementaryHouseholderReflectors of torch_xla, through LAPACK.
//
// Matrices are the last two dimensions, everything before them is a batch; attributes come from the
// text of backend_config ("{uplo = 76 : ui8}"). A build without LAPACK has none of them.
#pragma once

#include <utility>
#include <vector>

#include "ir/evaluator/custom_calls.h"

namespace lazuli::hlo {

// Target and implementation, for the registry.
std::vector<std::pair<std::string, CustomCall>> LapackCalls();

}  // namespace lazuli::hlo
