// Loops on the device: the functions of a loop are traced once, and the loop is one op of the
// graph.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "lazy/control/traced.h"

namespace lazuli::lazy {

// The elements of `xs` along their first dim, one after the other, or from the last to the first.
// The function takes the carried tensors and an element of each of `xs`, and gives the carried
// tensors anew, then further results. Returns the carried tensors after the last step, then the
// further results of all steps, along a new first dim. Differentiable (scan.h).
struct ScanArguments {
  std::string name;  // of the function that the user calls
  Tensors init, xs;
  int64_t count;  // of the elements of each of xs
  bool reverse = false;
  int64_t every = 1;  // backward gets the carried tensors of every such step (scan_blocks.h)
  backend::Device device;
};
Tensors Scan(const ScanArguments& arguments, TracedFunction function);

// The carried tensors after the function, which takes the number of the step, s64[], and them, was
// called for each number from `lower` below `upper`. Differentiable where both are known, by way of
// Scan(), else in forward mode.
struct Bound {
  Tensor tensor;                  // s64[]
  std::optional<int64_t> number;  // that the tensor holds, if it is known
};
struct ForArguments {
  std::string name;
  Bound lower, upper;
  Tensors init;
  backend::Device device;
};
Tensors ForLoop(const ForArguments& arguments, TracedFunction function);

// The carried tensors after `next` was called for as long as `more` of them, a pred[], held.
// Differentiable in forward mode; backward through it is an error.
Tensors WhileLoop(const std::string& name, const Tensors& init, backend::Device device,
                  TracedFunction more, TracedFunction next);

}  // namespace lazuli::lazy
