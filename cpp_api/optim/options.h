// Checks of options, for all optimisers.
#pragma once

#include <string>

#include "lazuli/tensor.h"

namespace lazuli::optim {

// Throws Error(kInvalidArgument): "SGD: lr is -1, it must be at least 0 (train.cc:41)".
void CheckAtLeastZero(const char* optimizer, const char* option, double value, SourceLocation loc);
// The same for at least 0 and below 1.
void CheckFraction(const char* optimizer, const char* option, double value, SourceLocation loc);
std::string NumberText(double value);

}  // namespace lazuli::optim
