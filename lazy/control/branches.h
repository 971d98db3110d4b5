// Branches on the device: one of several functions runs, and the choice is one op of the graph.
#pragma once

#include <string>
#include <vector>

#include "lazy/control/traced.h"

namespace lazuli::lazy {

// What function number `index`, s32[], gives for the operands; the first one for smaller numbers,
// the last one for greater ones. All functions are traced, and give results of the same shapes and
// dtypes. Differentiable: backward runs the chosen function again, forward mode runs it beside tangents.
struct BranchArguments {
  std::string name;  // of the function that the user calls
  Tensor index;
  std::vector<std::string> branches;  // what errors call them
  Tensors operands;
  backend::Device device;
};
Tensors Branch(const BranchArguments& arguments, absl::Span<const TracedFunction> functions);

// What the function gives for the operands, as a call by the name, which is written out before a
// device compiles it. Differentiable, as branches are.
Tensors Composite(const std::string& name, const Tensors& operands, backend::Device device,
                  TracedFunction function);

}  // namespace lazuli::lazy
