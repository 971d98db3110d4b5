// Reads IDX files: the format of MNIST.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lazuli/tensor.h"

namespace lazuli::data {

struct IdxFile {
  std::vector<std::uint32_t> dims;
  std::vector<std::uint8_t> bytes;  // row-major
};

// An IDX file of bytes with `rank` dims. Throws Error(kNotFound) if it cannot be opened, and
// Error(kInvalidArgument) if it is not such a file or not as long as its header says.
IdxFile ReadIdx(const std::string& path, int rank, SourceLocation loc);

}  // namespace lazuli::data
