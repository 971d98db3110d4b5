#include "lazy/control/branches.h"

#include <algorithm>
#include <utility>

#include "lazy/autograd/custom.h"
#include "lazy/ops/core/functions.h"
#include "lazy/ops/program/call.h"
#include "lazy/tensor/status_error.h"

namespace lazuli::lazy {
namespace {

void AddShapes(std::vector<Shape>& shapes, const Tensors& tensors) {
  for (const Tensor& tensor : tensors)
    shapes.push_back(tensor.defined() ? tensor.shape() : Shape(DType::kU32, {4}));
}

// Which of the parameters behind `before` others a program takes, with all of these.
std::vector<std::size_t> Taken(std::size_t before, absl::Span<const std::size_t> positions) {
  std::vector<std::size_t> taken(before);
  for (std::size_t i = 0; i < before; ++i) taken[i] = i;
  for (const std::size_t position : positions) taken.push_back(before + position);
  return taken;
}

// The functions of a choice and which of the tensors from outside each of them takes.
struct TracedBranches {
  BranchArguments given;
  std::vector<Traced> traced;
  std::vector<std::vector<std::size_t>> takes, gradient_takes;
  Tensors outside;                  // of all functions
  std::size_t of_functions = 0;     // of these, the others are of gradients alone
  std::vector<std::size_t> wanted;  // those that get a gradient

  const Program& first() const { return *traced[0].function.program; }
};

void CheckSameResults(const BranchArguments& given, const std::vector<Traced>& traced) {
  const std::vector<Shape>& first = traced[0].function.program->results();
  for (std::size_t b = 1; b < traced.size(); ++b) {
    const std::vector<Shape>& other = traced[b].function.program->results();
    if (first.size() != other.size()) {
      ThrowRecordError(given.name,
                       InvalidArgument(given.branches[0], " returns ", first.size(), " tensors, ",
                                       given.branches[b], " returns ", other.size()));
    }
    for (std::size_t i = 0; i < first.size(); ++i) {
      if (Compatible(first[i], other[i])) continue;
      ThrowRecordError(given.name,
                       InvalidArgument("result ", i, " is ", first[i], " of ", given.branches[0],
                                       ", and ", other[i], " of ", given.branches[b],
                                       "; shapes and dtypes must be the same"));
    }
  }
}

TracedBranches TraceBranches(const BranchArguments& given,
                             absl::Span<const TracedFunction> functions) {
  TracedBranches all;
  all.given = given;
  std::vector<TracedParameter> parameters;
  for (const Tensor& operand : given.operands)
    parameters.push_back({operand.shape(), WantsGradient({operand})});
  for (std::size_t i = 0; i < functions.size(); ++i)
    all.traced.push_back(
        TraceFunction(Str(given.name, "_", i), parameters, given.device, functions[i]));
  CheckSameResults(given, all.traced);
  for (const Traced& traced : all.traced)
    all.takes.push_back(PositionsIn(all.outside, traced.function.outside, Match::kHistory));
  all.of_functions = all.outside.size();
  for (std::size_t b = 0; b < all.traced.size(); ++b) {
    const Traced& traced = all.traced[b];
    for (const std::size_t i : traced.outside) all.wanted.push_back(all.takes[b][i]);
    if (traced.gradient.program)
      all.gradient_takes.push_back(
          PositionsIn(all.outside, traced.gradient.outside, Match::kElements));
  }
  std::sort(all.wanted.begin(), all.wanted.end());
  all.wanted.erase(std::unique(all.wanted.begin(), all.wanted.end()), all.wanted.end());
  return all;
}

// The gradient of a branch as one of all: the operands, cotangents and its tensors from outside, to
// the gradients of operands and of all tensors that get one; zeros for those that it does not use.
ProgramPtr BackwardBranch(const TracedBranches& all, std::size_t branch, const Tensors& outside) {
  const Traced& traced = all.traced[branch];
  return Composed(
      Str(all.given.name, "_backward_", branch), traced.gradient.program->parameters(),
      all.given.device, [&](absl::Span<const Tensor> in) {
        const Tensors made = Call(traced.gradient.program, in, all.given.device);
        Tensors results(made.begin(),
                        made.begin() + static_cast<std::ptrdiff_t>(traced.parameters.size()));
        for (const std::size_t position : all.wanted) {
          std::size_t own = 0;
          while (own < traced.outside.size() && all.takes[branch][traced.outside[own]] != position)
            ++own;
          results.push_back(own < traced.outside.size()
                                ? made[traced.parameters.size() + own]
                                : FullConstant(outside[position].shape().WithDefaultLayout(), 0,
                                               all.given.device));
        }
        return results;
      });
}

// `saved`: the index, the operands, all tensors from outside.
Tensors BranchBackward(const TracedBranches& all, absl::Span<const Tensor> saved,
                       absl::Span<const Tensor> dys) {
  const std::size_t operands = all.given.operands.size();
  const Tensors outside(saved.begin() + 1 + static_cast<std::ptrdiff_t>(operands), saved.end());
  Tensors arguments(saved.begin(), saved.begin() + 1 + static_cast<std::ptrdiff_t>(operands));
  for (std::size_t i = 0; i < dys.size(); ++i)
    if (IsDifferentiable(all.first().results()[i])) arguments.push_back(dys[i]);
  const std::size_t before = arguments.size() - 1;
  Append(arguments, outside);
  BranchParts parts;
  AddShapes(parts.parameters, Tensors(arguments.begin() + 1, arguments.end()));
  for (std::size_t b = 0; b < all.traced.size(); ++b) {
    parts.branches.push_back(BackwardBranch(all, b, outside));
    parts.takes.push_back(Taken(before, all.gradient_takes[b]));
  }
  const Tensors made = Call(ValueOrThrow(BranchProgram(all.given.name + "_backward", parts)),
                            arguments, all.given.device);
  Tensors gradients(1 + operands + all.of_functions);
  std::size_t next = 0;
  for (const std::size_t i : all.traced[0].parameters) gradients[1 + i] = made[next++];
  for (const std::size_t i : all.wanted) gradients[1 + operands + i] = made[next++];
  return gradients;
}

}  // namespace

Tensors Branch(const BranchArguments& given, absl::Span<const TracedFunction> functions) {
  TracedBranches all = TraceBranches(given, functions);
  const Tensors outside = WithState(all.outside, given.device);
  Tensors arguments{given.index};
  Append(arguments, given.operands);
  Append(arguments, absl::MakeConstSpan(outside).first(all.of_functions));
  BranchParts parts;
  AddShapes(parts.parameters, Tensors(arguments.begin() + 1, arguments.end()));
  for (std::size_t b = 0; b < all.traced.size(); ++b) {
    parts.branches.push_back(all.traced[b].function.program);
    parts.takes.push_back(Taken(given.operands.size(), all.takes[b]));
  }
  Tensors results =
      CallWithoutHistory(ValueOrThrow(BranchProgram(given.name, parts)), arguments, given.device);
  if (all.gradient_takes.empty() || !WantsGradient(arguments)) return results;
  Tensors saved{given.index};
  Append(saved, given.operands);
  Append(saved, outside);
  const std::string name = given.name;
  const std::vector<CustomNode::Result> kinds(results.size());
  const auto node = MakeIntrusive<CustomNode>(
      name, arguments,
      [all = std::move(all)](const CustomNode& self, absl::Span<const Tensor> dys) {
        return BranchBackward(all, self.Saved(), dys);
      });
  node->Finish(arguments, absl::MakeSpan(results), kinds, saved);
  return results;
}

}  // namespace lazuli::lazy
