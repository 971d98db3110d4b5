// Reads a whole file.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lazuli/tensor.h"

namespace lazuli::data {

// Throws Error(kNotFound): "cannot read PATH; HINT".
std::vector<std::uint8_t> ReadFile(const std::string& path, const std::string& hint,
                                   SourceLocation loc);

}  // namespace lazuli::data
