#include "lazy/control/branches.h"

#include <memory>
#include <optional>
#include <utility>

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

void CheckSameResults(const BranchArguments& given, const std::vector<TracingPtr>& traces) {
  const std::vector<Shape>& first = traces[0]->function().program->results();
  for (std::size_t b = 1; b < traces.size(); ++b) {
    const std::vector<Shape>& other = traces[b]->function().program->results();
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

// A choice between functions that were traced.
struct TracedBranches {
  std::string name;
  backend::Device device;
  Tensor index;
  std::vector<TracingPtr> traces;
  std::vector<Stage> stages;  // one for each, of the same parameters and results
  bool is_composite = false;  // there is one, and nothing to choose
};
struct BranchTensors {
  Tensors operands;
  Tensors outside,
      arguments;  // the tensors from outside of all functions, and what is given for them
};
Tensors RunBranches(const TracedBranches& branches, const BranchTensors& given);

// Of all branches, each once for each history.
Tensors OutsideOf(const std::vector<Stage>& stages) {
  Tensors all;
  for (const Stage& stage : stages) PositionsIn(all, stage.outside, Match::kHistory);
  return all;
}

// A choice and its derivatives, which are choices between derivatives of the branches.
class DifferentiatedBranches {
 public:
  DifferentiatedBranches(TracedBranches branches, Tensors outside)
      : branches_(std::move(branches)), outside_(std::move(outside)) {
    const Stage& first = branches_.stages[0];
    operands_ = WithHistory(first.values.parameters);
    results_ = DifferentiableAt(first.program->results());
    of_functions_ = outside_.size();
    std::vector<bool> wanted(of_functions_);
    for (const Stage& stage : branches_.stages)
      for (const std::size_t i : WithHistory(stage.outside))
        wanted[PositionOf(stage.outside[i])] = true;
    for (std::size_t i = 0; i < of_functions_; ++i)
      if (wanted[i]) wanted_.push_back(i);
    const GradModeGuard no_history(false);
    refused_ = WhyNotDifferentiable([&] { gradients_ = GradientStages(); });
    for (const Stage& stage : gradients_) PositionsIn(outside_, stage.outside, Match::kElements);
  }

  // The inputs that get gradients: the index, operands, tensors from outside of the functions.
  std::vector<std::size_t> Wanted() const {
    std::vector<std::size_t> wanted;
    for (const std::size_t i : operands_) wanted.push_back(1 + i);
    for (const std::size_t i : wanted_) wanted.push_back(1 + operands() + i);
    return wanted;
  }
  Tensors Saved(const BranchTensors& given) const {
    Tensors saved{branches_.index};
    Append(saved, given.operands);
    Append(saved, given.arguments);
    const Tensors more(outside_.begin() + static_cast<std::ptrdiff_t>(of_functions_),
                       outside_.end());
    Append(saved, WithState(more, branches_.device));
    return saved;
  }
  Tensors Backward(const Tensors& saved, absl::Span<const Tensor> dys) const {
    ThrowIfError(refused_);
    const std::vector<Stage> stages = GradEnabled() ? GradientStages() : gradients_;
    Tensors cotangents;
    for (const std::size_t i : results_) {
      const Shape& shape = branches_.stages[0].program->results()[i];
      cotangents.push_back(dys[i].defined() ? dys[i] : ZerosOf(shape, branches_.device));
    }
    const Tensors made = Run("_backward", stages, saved, cotangents);
    Tensors gradients(1 + operands() + of_functions_);
    std::size_t next = 0;
    for (const std::size_t i : Wanted()) gradients[i] = made[next++];
    return gradients;
  }
  Tensors Forward(const Tensors& saved, absl::Span<const Tensor> tangents) const {
    std::vector<Stage> stages;
    for (std::size_t b = 0; b < branches_.stages.size(); ++b) {
      stages.push_back(branches_.traces[b]->Continue(branches_.traces[b]->name() + "_tangents",
                                                     [&] { return WithTangents(b); }));
    }
    const Tensors made = Run("_forward", stages, saved, {tangents.begin(), tangents.end()});
    const std::size_t results = branches_.stages[0].program->results().size();
    Tensors found(results);
    for (std::size_t k = 0; k < results_.size(); ++k) found[results_[k]] = made[results + k];
    return found;
  }

 private:
  std::size_t operands() const { return branches_.stages[0].values.parameters.size(); }
  // Among the tensors from outside, of one with its history.
  std::size_t PositionOf(const Tensor& tensor) const {
    Tensors all = outside_;
    return PositionsIn(all, {tensor}, Match::kHistory)[0];
  }

  // The operands and `more`, of functions that were made of those there are.
  Tensors Run(const char* what, std::vector<Stage> stages, const Tensors& saved,
              const Tensors& more) const {
    TracedBranches made = branches_;
    made.name += what;
    made.index = saved[0];
    made.stages = std::move(stages);
    const absl::Span<const Tensor> all = saved;
    BranchTensors given;
    Append(given.operands, all.subspan(1, operands()));
    Append(given.operands, more);
    given.outside = OutsideOf(made.stages);
    given.arguments = ArgumentsFor(given.outside, outside_, all.subspan(1 + operands()));
    return RunBranches(made, given);
  }

  // The operands of branch b that get a gradient, then its tensors from outside that do.
  Tensors WantedOf(std::size_t b) const {
    const Stage& stage = branches_.stages[b];
    Tensors wanted = AtPositions(stage.values.parameters, operands_);
    Append(wanted, AtPositions(stage.outside, WithHistory(stage.outside)));
    return wanted;
  }
  // Which of what WantedOf() gives of branch b, behind the operands, is tensor number `i` of all.
  std::optional<std::size_t> OwnNumber(std::size_t b, std::size_t i) const {
    const Stage& stage = branches_.stages[b];
    const std::vector<std::size_t> own = WithHistory(stage.outside);
    for (std::size_t k = 0; k < own.size(); ++k)
      if (PositionOf(stage.outside[own[k]]) == i) return operands_.size() + k;
    return std::nullopt;
  }

  // Of the operands and cotangents: gradients of operands and of all tensors from outside that get
  // one, zeros for those that the branch does not use.
  TracedValues Gradient(std::size_t b) const {
    const TracedValues& values = branches_.stages[b].values;
    TracedValues gradient{.parameters = values.parameters, .results = {}};
    Tensors cotangents(values.results.size());
    for (const std::size_t i : results_) {
      cotangents[i] = branches_.traces[b]->Parameter(values.results[i].shape());
      gradient.parameters.push_back(cotangents[i]);
    }
    const Tensors made = GradientsOf(values.results, cotangents, WantedOf(b));
    Append(gradient.results, absl::MakeConstSpan(made).first(operands_.size()));
    for (const std::size_t i : wanted_) {
      const std::optional<std::size_t> own = OwnNumber(b, i);
      gradient.results.push_back(own ? made[*own] : ZerosOf(outside_[i].shape(), branches_.device));
    }
    return gradient;
  }
  std::vector<Stage> GradientStages() const {
    std::vector<Stage> stages;
    for (std::size_t b = 0; b < branches_.stages.size(); ++b) {
      stages.push_back(branches_.traces[b]->Continue(branches_.traces[b]->name() + "_gradient",
                                                     [&] { return Gradient(b); }));
    }
    return stages;
  }
  // Of the operands and tangents, of operands and of all tensors from outside that get one: the
  // results, then their tangents.
  TracedValues WithTangents(std::size_t b) const {
    TracedValues both = branches_.stages[b].values;
    const Tensors wanted = WantedOf(b);
    Tensors tangents(wanted.size());
    const auto parameter = [&](const Tensor& like) {
      both.parameters.push_back(branches_.traces[b]->Parameter(like.shape()));
      return both.parameters.back();
    };
    for (std::size_t k = 0; k < operands_.size(); ++k) tangents[k] = parameter(wanted[k]);
    for (const std::size_t i : wanted_) {
      const Tensor tangent = parameter(outside_[i]);
      if (const std::optional<std::size_t> own = OwnNumber(b, i)) tangents[*own] = tangent;
    }
    Append(both.results, TangentsOf(both.results, wanted, tangents));
    return both;
  }

  TracedBranches branches_;
  Tensors outside_;               // of all functions, then of gradients alone
  std::size_t of_functions_ = 0;  // how many are of functions
  std::vector<std::size_t> operands_, wanted_, results_;  // that have derivatives
  std::vector<Stage> gradients_;
  absl::Status refused_;  // not OK: why there are none
};

Tensors CallComposite(const TracedBranches& branches, const Tensors& arguments) {
  const GradModeGuard no_history(false);
  return Call(branches.stages[0].program, arguments, branches.device,
              {.kind = CallForm::Kind::kComposite, .name = branches.name});
}

Tensors RunBranches(const TracedBranches& branches, const BranchTensors& given) {
  Tensors inputs{branches.index};
  Append(inputs, given.operands);
  Append(inputs, given.arguments);
  BranchParts parts;
  AddShapes(parts.parameters, Tensors(inputs.begin() + 1, inputs.end()));
  Tensors outside = given.outside;
  for (const Stage& stage : branches.stages) {
    parts.branches.push_back(stage.program);
    parts.takes.push_back(
        Taken(given.operands.size(), PositionsIn(outside, stage.outside, Match::kHistory)));
  }
  Tensors results =
      branches.is_composite
          ? CallComposite(branches, AtPositions({inputs.begin() + 1, inputs.end()}, parts.takes[0]))
          : CallWithoutHistory(ValueOrThrow(BranchProgram(branches.name, parts)), inputs,
                               branches.device);
  if (!branches.traces[0]->is_differentiable() || !WantsGradient(inputs)) return results;
  const auto derivatives = std::make_shared<const DifferentiatedBranches>(branches, given.outside);
  AttachHistory(
      {.name = branches.name,
       .wanted = derivatives->Wanted(),
       .backward = [derivatives](
                       const Tensors& saved,
                       absl::Span<const Tensor> dys) { return derivatives->Backward(saved, dys); },
       .forward = [derivatives](
                      const Tensors& saved, absl::Span<const Tensor> tangents,
                      const std::vector<bool>&) { return derivatives->Forward(saved, tangents); }},
      inputs, derivatives->Saved(given), results);
  return results;
}

}  // namespace

Tensors Branch(const BranchArguments& given, absl::Span<const TracedFunction> functions) {
  TracedBranches branches{
      .name = given.name, .device = given.device, .index = given.index, .traces = {}, .stages = {}};
  std::vector<TracedParameter> parameters;
  for (const Tensor& operand : given.operands)
    parameters.push_back({operand.shape(), WantsGradient({operand})});
  for (std::size_t i = 0; i < functions.size(); ++i) {
    branches.traces.push_back(
        std::make_shared<Tracing>(Str(given.name, "_", i), parameters, given.device, functions[i]));
    branches.stages.push_back(branches.traces.back()->function());
  }
  CheckSameResults(given, branches.traces);
  const Tensors outside = OutsideOf(branches.stages);
  return RunBranches(branches, {.operands = given.operands,
                                .outside = outside,
                                .arguments = WithState(outside, given.device)});
}

Tensors Composite(const std::string& name, const Tensors& operands, backend::Device device,
                  TracedFunction function) {
  std::vector<TracedParameter> parameters;
  for (const Tensor& operand : operands)
    parameters.push_back({operand.shape(), WantsGradient({operand})});
  const auto trace = std::make_shared<Tracing>(name, parameters, device, function);
  const TracedBranches composite{.name = name,
                                 .device = device,
                                 .index = ZerosOf(Shape(DType::kS32), device),
                                 .traces = {trace},
                                 .stages = {trace->function()},
                                 .is_composite = true};
  const Tensors outside = OutsideOf(composite.stages);
  return RunBranches(
      composite,
      {.operands = operands, .outside = outside, .arguments = WithState(outside, device)});
}

}  // namespace lazuli::lazy
