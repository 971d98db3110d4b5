// Functions of tensors as programs: what a function computes, and, from the history that it records
// meanwhile, how it is differentiated. The function is called once for both.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/types/span.h"

#include "lazy/control/programs.h"
#include "lazy/tensor/tensor.h"

namespace lazuli::lazy {

// Calls the user's function with these tensors. Throws what that throws.
using TracedFunction = absl::FunctionRef<Tensors(absl::Span<const Tensor>)>;

// A parameter of a function. One that is differentiable gets a gradient if it is of floats.
struct TracedParameter {
  Shape shape;
  bool differentiable = false;
};

// A program with arguments for its last parameters: tensors from outside of the function, of which
// the state of its draws (Capture::draws) is undefined.
struct Closure {
  ProgramPtr program;
  Tensors outside;
  std::optional<int64_t> blocks = {};  // that it draws, if it does

  // As a part of a program where the arguments from outside begin at `first`.
  Part At(std::size_t first) const;
};

struct Traced {
  // The parameters, then those from outside, to the results.
  Closure function;
  // The parameters, a cotangent for each result of floats, then those from outside, to the
  // gradients of the differentiable parameters, then of the tensors from outside that have a
  // history. No program if no gradients are recorded.
  Closure gradient;
  // The positions of these parameters, and of these tensors in function.outside.
  std::vector<std::size_t> parameters, outside;
};

// Nothing can be read inside, and tensors from outside cannot be written to. Throws StatusError.
enum class Differentiation : uint8_t { kNone, kReverse };
Traced TraceFunction(const std::string& name, absl::Span<const TracedParameter> parameters,
                     backend::Device device, TracedFunction function,
                     Differentiation differentiation = Differentiation::kReverse);

// The program of a function that uses nothing from outside, such as one that calls other programs.
// What it is given beside `parameters` comes from a program that was traced, so mistakes are ours.
ProgramPtr Composed(const std::string& name, absl::Span<const Shape> parameters,
                    backend::Device device, TracedFunction function);

// Arguments from outside for a call: with a state that continues the default generator's numbers in
// the place of the undefined one. The generator moves on by one block.
Tensors WithState(const Tensors& outside, backend::Device device);

// The position of each tensor of `some` in `all`, to which it is added if it is not there: one with
// the same elements, and with the same history where that matters.
enum class Match : uint8_t { kElements, kHistory };
std::vector<std::size_t> PositionsIn(Tensors& all, const Tensors& some, Match match);

bool WantsGradient(const Tensors& tensors);
void Append(Tensors& all, absl::Span<const Tensor> more);

// Call() where gradients are not recorded, whatever the arguments want.
Tensors CallWithoutHistory(const ProgramPtr& program, absl::Span<const Tensor> arguments,
                           backend::Device device);

}  // namespace lazuli::lazy
