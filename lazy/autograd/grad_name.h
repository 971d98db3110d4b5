// What PyTorch calls the node of a history: MulBackward0.
#pragma once

#include <string>

#include "lazy/tensor/tape.h"

namespace lazuli::lazy {

// Of an op "log_softmax" LogSoftmaxBackward0; a user's function has the name that it was given.
std::string GradName(const GradNode& node);

}  // namespace lazuli::lazy
