// The float type of what has none of its own: Python's floats, integers in functions of floats,
// tensors that are made without a dtype. The process's, as PyTorch's.
#pragma once

#include "ir/types/dtype.h"

namespace lazuli::lazy {

DType DefaultFloat();    // f32, unless it was set
DType DefaultComplex();  // of two of them
// A float type of 16 bits or more.
void SetDefaultFloat(DType dtype);

}  // namespace lazuli::lazy
