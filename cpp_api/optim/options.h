// What the optimisers share: checks of options, and names of what they keep.
#pragma once

#include <string>

#include "lazuli/tensor.h"

namespace lazuli::optim {

// Throws Error(kInvalidArgument): "SGD: lr is -1, it must be at least 0 (train.cc:41)".
void CheckAtLeastZero(const char* optimizer, const char* option, double value, SourceLocation loc);
std::string NumberText(double value);

// "fc1.weight.momentum", if the parameter has a name.
void NameState(Tensor& state, const Tensor& parameter, const char* name);

}  // namespace lazuli::optim
