// What the algorithms of optimisers share: checks of options, and states that they make.
#pragma once

#include <cstddef>
#include <utility>

#include "cpp_api/optim/algorithms.h"
#include "lazuli/tensor.h"

namespace lazuli::optim {

// Throws Error(kInvalidArgument): "SGD: lr is -1, it must be at least 0 (train.cc:41)".
void CheckAtLeastZero(const char* optimizer, const char* option, double value, SourceLocation loc);
// The same for at least 0 and below 1.
void CheckFraction(const char* optimizer, const char* option, double value, SourceLocation loc);
void CheckBetas(const char* optimizer, const std::pair<double, double>& betas, SourceLocation loc);
// "SGD: " and what is wrong.
[[noreturn]] void FailOptions(const char* optimizer, const std::string& what, SourceLocation loc);

// Makes the undefined ones of a batch's states; they start as `value`.
void Fill(Batch& batch, std::size_t state, double value = 0);

// Weight decay as foreach_update_ takes it: nothing if it is 0.
template <class O>
void SetDecay(UpdateStep& step, const O& options, bool decoupled) {
  if (options.weight_decay == 0) return;
  if (decoupled)
    step.shrink = 1 - options.lr * options.weight_decay;
  else
    step.weight_decay = options.weight_decay;
}

// For a foreach_* update without a state that it could have.
inline const TensorList kNoTensors;

}  // namespace lazuli::optim
