// All prefixes of elements under a function for which the brackets do not matter.
#pragma once

#include <string>

#include "absl/functional/function_ref.h"
#include "absl/types/span.h"

#include "lazy/tensor/tensor.h"

namespace lazuli::lazy {

using CombineFunction =
    absl::FunctionRef<Tensors(absl::Span<const Tensor>, absl::Span<const Tensor>)>;

// Along the dim, which all of `xs` have, by pairs of pairs: about 2 log2(n) calls of the function,
// each of which combines many elements at once (Blelloch, "Prefix Sums and Their Applications",
// 1990).
Tensors AssociativeScan(const std::string& name, absl::Span<const Tensor> xs, int64_t dim,
                        CombineFunction combine);

}  // namespace lazuli::lazy
