// What the optimisers share: checks of options.
#pragma once

#include "lazuli/foreach.h"
#include "lazuli/tensor.h"

namespace lazuli::optim {

// Throws Error(kInvalidArgument): "SGD: lr is -1, it must be at least 0 (train.cc:41)".
void CheckAtLeastZero(const char* optimizer, const char* option, double value, SourceLocation loc);
// The same for at least 0 and below 1.
void CheckFraction(const char* optimizer, const char* option, double value, SourceLocation loc);

// For a foreach_* update without a state that it could have.
inline const TensorList kNoTensors;

}  // namespace lazuli::optim
