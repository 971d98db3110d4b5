// What training loops do to gradients between backward() and step().
#pragma once

#include <vector>

#include "lazuli/ops.h"

namespace lazuli::nn::utils {

// Scales the gradients of the parameters so that the norm of all of them as one vector is at most
// `max_norm`, and returns the norm before. `order` is 1, 2, ... or infinity (the largest absolute
// value). Parameters without gradient are left out.
LAZULI_API Tensor clip_grad_norm_(const std::vector<Tensor>& parameters, const Scalar& max_norm,
                                  double order = 2, LAZULI_LOC);
// Limits each element of the gradients to [-limit, limit].
LAZULI_API void clip_grad_value_(const std::vector<Tensor>& parameters, const Scalar& limit,
                                 LAZULI_LOC);

}  // namespace lazuli::nn::utils
