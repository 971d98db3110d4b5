// Functions of tensors as programs: what a function computes, and, from the history that it records
// meanwhile, its derivatives of any order. The function is called once for all of them.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/types/span.h"

#include "lazy/control/programs.h"
#include "lazy/execution/capture.h"
#include "lazy/tensor/tensor.h"

namespace lazuli::lazy {

// Calls the user's function with these tensors. Throws what that throws.
using TracedFunction = absl::FunctionRef<Tensors(absl::Span<const Tensor>)>;

// A parameter of a function. One that is differentiable gets a gradient if it is of floats.
struct TracedParameter {
  Shape shape;
  bool differentiable = false;
};

// What a trace computes of what: tensors of the trace.
struct TracedValues {
  Tensors parameters, results;
};

// Values as a program. Its last parameters are for tensors from outside of the function, of which
// the state of its draws (Capture::draws) is undefined.
struct Stage {
  TracedValues values;
  ProgramPtr program;
  Tensors outside;
  int64_t blocks = 0;  // that it draws

  // As a part of a program where the arguments from outside begin at `first`, and of which a step
  // draws so many blocks.
  Part At(std::size_t first, int64_t blocks) const;
  // Whether something is computed of parameter number i.
  bool Uses(std::size_t i) const;
  // The parameters from number `first` on, then those from outside.
  Tensors Others(std::size_t first) const;
};

// A function that was traced, from which more can be traced: derivatives of what it computes.
// Nothing can be read inside, and tensors from outside cannot be written to.
class Tracing {
 public:
  // Throws StatusError, and what the function throws.
  Tracing(std::string name, absl::Span<const TracedParameter> parameters, backend::Device device,
          TracedFunction function);

  const std::string& name() const { return name_; }
  const Stage& function() const { return function_; }
  // Whether histories were recorded while it was called.
  bool is_differentiable() const { return is_differentiable_; }

  // What `more` computes of what was computed before; with a history if histories are recorded. The
  // function's callbacks are not called again unless `effects` says so.
  Stage Continue(const std::string& name, absl::FunctionRef<TracedValues()> more,
                 Capture::OwnEffects effects = Capture::OwnEffects::kNot);
  // For use in there.
  Tensor Parameter(const Shape& shape);

 private:
  Stage Closed(TracedValues values, const std::string& name);

  std::string name_;
  backend::Device device_;
  bool is_differentiable_;
  Capture capture_;
  Stage function_;
};
using TracingPtr = std::shared_ptr<Tracing>;

// In a trace. The gradients of what `wanted` are, for cotangents of the results of floats, undefined
// ones being zeros; zeros where there is none. Cotangents of others are not looked at.
Tensors GradientsOf(const Tensors& results, const Tensors& cotangents, const Tensors& wanted);
// The tangents of the results of floats, for tangents of what `wanted` are.
Tensors TangentsOf(const Tensors& results, const Tensors& wanted, const Tensors& tangents);

// Traces a derivative. The error of what has none, which is one of backward, and not of the call that
// records the function.
absl::Status WhyNotDifferentiable(absl::FunctionRef<void()> trace);

// Which of the tensors are of floats and have a history: those that get a gradient.
std::vector<std::size_t> WithHistory(const Tensors& tensors);
Tensors AtPositions(const Tensors& tensors, absl::Span<const std::size_t> positions);
// The positions of floats and complex numbers.
std::vector<std::size_t> DifferentiableAt(absl::Span<const Shape> shapes);

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
// The arguments for `some` if those for `all` are `arguments`: for what is not among them, itself.
Tensors ArgumentsFor(const Tensors& some, const Tensors& all, absl::Span<const Tensor> arguments);

bool WantsGradient(const Tensors& tensors);
void Append(Tensors& all, absl::Span<const Tensor> more);
Tensor ZerosOf(const Shape& shape, backend::Device device);
std::vector<Shape> ShapesOf(absl::Span<const Tensor> tensors);

// Call() where gradients are not recorded, whatever the arguments want.
Tensors CallWithoutHistory(const ProgramPtr& program, absl::Span<const Tensor> arguments,
                           backend::Device device);

// The derivatives of a call of control flow, from what it saved.
struct ControlDerivatives {
  std::string name;
  std::vector<std::size_t> wanted;  // the inputs that get a gradient
  // The gradients of all inputs, some undefined, for cotangents of the results, some undefined.
  std::function<Tensors(const Tensors& saved, absl::Span<const Tensor> dys)> backward;
  // Tangents of the results that are asked for, the others undefined, for tangents of the inputs that
  // are wanted.
  std::function<Tensors(const Tensors& saved, absl::Span<const Tensor> tangents,
                        const std::vector<bool>& asked)>
      forward;
};
// Gives the results their history.
void AttachHistory(ControlDerivatives derivatives, const Tensors& inputs, const Tensors& saved,
                   Tensors& results);

}  // namespace lazuli::lazy
