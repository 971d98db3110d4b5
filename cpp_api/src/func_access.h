// Programs of functions for one of many samples, as C++ and Python batch them.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "lazuli/func.h"
#include "lazuli/hlo.h"

namespace lazuli::func {

// A function for a batch: its arguments are the batch's, then `outside`.
struct BatchedFunction {
  HloModule program;
  std::vector<Tensor> outside;  // what the function used and did not get
  std::vector<bool> depends;    // which results depend on the samples
};

// Calls `record` once with tensors of one sample of the arguments, of which those that are batched count
// `size` samples by dim 0. All results of the program have a batch dim in front.
BatchedFunction BatchFunction(
    const std::function<std::vector<Tensor>(const std::vector<Tensor>&)>& record,
    const std::vector<Tensor>& arguments, const std::vector<bool>& batched, std::int64_t size,
    Randomness randomness, const std::string& name);

}  // namespace lazuli::func
