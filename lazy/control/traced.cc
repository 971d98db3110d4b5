#include "lazy/control/traced.h"

#include <algorithm>
#include <utility>

#include "lazy/autograd/backward.h"
#include "lazy/execution/capture.h"
#include "lazy/ops/core/functions.h"
#include "lazy/ops/program/call.h"
#include "lazy/tensor/status_error.h"
#include "lazy/tensor/tape.h"

namespace lazuli::lazy {
namespace {

Closure ClosureOf(Capture& capture, absl::Span<const Tensor> results, const std::string& name) {
  Closure closure{ValueOrThrow(capture.Finish(results, name)), capture.outside()};
  if (capture.draws()) closure.blocks = capture.draws()->blocks;
  return closure;
}

bool HasHistory(const Tensor& tensor) { return static_cast<bool>(GradEdge(tensor)); }

// The gradients of what `wanted` are, zeros where there is none.
Tensors GradientsOf(const Tensors& results, const Tensors& dys, const Tensors& wanted) {
  Tensors roots, seeds, gradients(wanted.size());
  std::size_t next = 0;
  for (const Tensor& result : results) {
    if (!HasGradient(result.dtype())) continue;
    const Tensor& dy = dys[next++];
    if (!HasHistory(result)) continue;
    roots.push_back(result);
    seeds.push_back(dy);
  }
  if (!roots.empty() && !wanted.empty())
    gradients = Grad(roots, wanted, seeds, {.retain_graph = true}, /*allow_unused=*/true);
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    if (gradients[i].defined()) continue;
    gradients[i] = FullConstant(wanted[i].shape().WithDefaultLayout(), 0, wanted[i].device());
  }
  return gradients;
}

void AddGradient(Capture& capture, const std::string& name, const Tensors& leaves,
                 const Tensors& results, backend::Device device, Traced& traced) {
  Tensors wanted, dys;
  for (const std::size_t i : traced.parameters) wanted.push_back(leaves[i]);
  for (std::size_t i = 0; i < traced.function.outside.size(); ++i) {
    const Tensor& tensor = traced.function.outside[i];
    if (!tensor.defined() || !HasGradient(tensor.dtype()) || !HasHistory(tensor)) continue;
    traced.outside.push_back(i);
    wanted.push_back(tensor);
  }
  for (const Tensor& result : results) {
    if (HasGradient(result.dtype())) dys.push_back(capture.Parameter(result.shape(), device));
  }
  traced.gradient = ClosureOf(capture, GradientsOf(results, dys, wanted), name + "_gradient");
  // Both draw the same numbers, so both go on equally far.
  if (traced.function.blocks && traced.gradient.blocks)
    traced.function.blocks = traced.gradient.blocks;
}

}  // namespace

Part Closure::At(std::size_t first) const {
  Part part{program};
  for (std::size_t i = 0; i < outside.size(); ++i) {
    if (!outside[i].defined()) part.states.push_back({first + i, *blocks});
  }
  return part;
}

Traced TraceFunction(const std::string& name, absl::Span<const TracedParameter> parameters,
                     backend::Device device, TracedFunction function,
                     Differentiation differentiation) {
  const bool differentiates = GradEnabled() && differentiation == Differentiation::kReverse;
  Traced traced;
  Capture capture(Capture::FromOutside::kReadOnly);
  capture.EndHistoriesOutside();
  capture.DrawFromParameter(device);
  Tensors leaves, given;
  for (const TracedParameter& parameter : parameters) {
    leaves.push_back(capture.Parameter(parameter.shape.WithDefaultLayout(), device));
    given.push_back(leaves.back());
    if (!parameter.differentiable || !differentiates || !HasGradient(parameter.shape.dtype()))
      continue;
    leaves.back().impl()->mutable_autograd().requires_grad = true;
    given.back() = Clone(leaves.back());  // the function may write to it
    traced.parameters.push_back(leaves.size() - 1);
  }
  const Tensors results = function(given);
  traced.function = ClosureOf(capture, results, name);
  if (differentiates) AddGradient(capture, name, leaves, results, device, traced);
  return traced;
}

ProgramPtr Composed(const std::string& name, absl::Span<const Shape> parameters,
                    backend::Device device, TracedFunction function) {
  Capture capture(Capture::FromOutside::kReadOnly);
  const GradModeGuard no_history(false);
  Tensors given;
  for (const Shape& shape : parameters)
    given.push_back(capture.Parameter(shape.WithDefaultLayout(), device));
  ProgramPtr program = ValueOrThrow(capture.Finish(function(given), name));
  LAZULI_CHECK(capture.outside().empty(), name, " uses something from outside");
  return program;
}

Tensors WithState(const Tensors& outside, backend::Device device) {
  Tensors arguments = outside;
  for (Tensor& argument : arguments) {
    if (argument.defined()) continue;
    constexpr int64_t kWords = int64_t{1} << 32;
    const Tensor seed =
        To(Randint(0, kWords, {2}, DType::kS64, device, DefaultGenerator()), DType::kU32);
    argument = Cat({seed, FullConstant(Shape(DType::kU32, {2}), 0, device)});
  }
  return arguments;
}

std::vector<std::size_t> PositionsIn(Tensors& all, const Tensors& some, Match match) {
  const auto is_same = [match](const Tensor& x, const Tensor& y) {
    if (!x.defined() || !y.defined()) return x.defined() == y.defined();
    if (&x.storage() != &y.storage()) return false;
    const Edge a = GradEdge(x), b = GradEdge(y);
    return match == Match::kElements ||
           (a.node == b.node && a.leaf == b.leaf && a.index == b.index);
  };
  std::vector<std::size_t> positions;
  for (const Tensor& tensor : some) {
    const auto same = std::find_if(all.begin(), all.end(),
                                   [&](const Tensor& other) { return is_same(tensor, other); });
    positions.push_back(static_cast<std::size_t>(same - all.begin()));
    if (same == all.end()) all.push_back(tensor);
  }
  return positions;
}

bool WantsGradient(const Tensors& tensors) {
  return WantsGrad(std::vector<Operand>(tensors.begin(), tensors.end()));
}

void Append(Tensors& all, absl::Span<const Tensor> more) {
  all.insert(all.end(), more.begin(), more.end());
}

Tensors CallWithoutHistory(const ProgramPtr& program, absl::Span<const Tensor> arguments,
                           backend::Device device) {
  const GradModeGuard no_history(false);
  return Call(program, arguments, device);
}

}  // namespace lazuli::lazy
