// What convolutions put around x where it is not zeros.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "lazuli/tensor.h"

namespace lazuli::nn {

// Throws Error(kInvalidArgument) for a mode that there is not.
void CheckPaddingMode(const std::string& layer, const std::string& mode, SourceLocation loc);

// x with so many more elements before and behind each dim of space, the first dim first.
Tensor PaddedBy(const Tensor& x, const std::vector<std::pair<std::int64_t, std::int64_t>>& around,
                const std::string& mode, SourceLocation loc);

// How many elements "same" puts before and behind a dim.
std::pair<std::int64_t, std::int64_t> SameAround(std::int64_t kernel, std::int64_t dilation);

}  // namespace lazuli::nn
