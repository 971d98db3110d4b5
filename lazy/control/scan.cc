#include "lazy/control/scan.h"

#include <algorithm>
#include <iterator>
#include <memory>
#include <utility>

#include "lazy/ops/core/functions.h"
#include "lazy/tensor/status_error.h"

namespace lazuli::lazy {
namespace {

using Positions = std::vector<std::size_t>;

// How a step is differentiated. Its others are what it is given behind the elements, then tensors
// from outside.
struct ScanGradient {
  // Takes: cotangents of the carried results, sums of gradients of others; what the step was given,
  // cotangents of the further results, and perhaps of the carried tensors that were kept; what the
  // step is given behind the elements. Gives: cotangents of the carried tensors, the sums; gradients
  // of the elements.
  Stage step;
  absl::Status refused;                 // not OK: why there is no such step
  Positions carried, elements, others;  // that get gradients
  Positions further;                    // the results that have cotangents, of all
};

Tensors WantedOf(const TracedScan& scan, const ScanGradient& gradient) {
  const Tensors& given = scan.step.values.parameters;
  Tensors wanted = AtPositions(given, gradient.carried);
  for (const std::size_t i : gradient.elements) wanted.push_back(given[scan.carried + i]);
  Append(wanted, AtPositions(scan.step.Others(scan.inputs()), gradient.others));
  return wanted;
}

void FindWanted(const TracedScan& scan, ScanGradient& gradient) {
  const absl::Span<const Tensor> given = scan.step.values.parameters;
  const auto of = [&](std::size_t first, std::size_t count) {
    const absl::Span<const Tensor> some = given.subspan(first, count);
    return WithHistory(Tensors(some.begin(), some.end()));
  };
  gradient.carried = of(0, scan.carried);
  for (const std::size_t i : of(scan.carried, scan.over)) {
    if (std::find(scan.absent.begin(), scan.absent.end(), i) == scan.absent.end())
      gradient.elements.push_back(i);
  }
  gradient.others = WithHistory(scan.step.Others(scan.inputs()));
  for (const std::size_t i : DifferentiableAt(scan.step.program->results()))
    if (i >= scan.carried) gradient.further.push_back(i);
}

// The step of backward, with cotangents of the carried tensors that were kept if `of_kept`.
TracedValues BackwardStep(const TracedScan& scan, const ScanGradient& gradient, bool of_kept) {
  const absl::Span<const Tensor> given = scan.step.values.parameters;
  const Tensors others = scan.step.Others(scan.inputs());
  Tensors cotangents(scan.results()), sums, of_given;
  TracedValues step;
  const auto parameter = [&](const Tensor& like) {
    step.parameters.push_back(scan.trace->Parameter(like.shape()));
    return step.parameters.back();
  };
  for (const std::size_t i : gradient.carried) cotangents[i] = parameter(given[i]);
  for (const std::size_t i : gradient.others) sums.push_back(parameter(others[i]));
  Append(step.parameters, given.first(scan.inputs()));
  for (const std::size_t i : gradient.further)
    cotangents[i] = parameter(scan.step.values.results[i]);
  if (of_kept)
    for (const std::size_t i : gradient.carried) of_given.push_back(parameter(given[i]));
  Append(step.parameters, given.subspan(scan.inputs()));
  const Tensors made = GradientsOf(scan.step.values.results, cotangents, WantedOf(scan, gradient));
  const std::size_t carried = gradient.carried.size(), elements = gradient.elements.size();
  for (std::size_t k = 0; k < carried; ++k)
    step.results.push_back(of_kept ? Add(made[k], of_given[k]) : made[k]);
  for (std::size_t k = 0; k < sums.size(); ++k)
    step.results.push_back(Add(sums[k], made[carried + elements + k]));
  Append(step.results, absl::MakeConstSpan(made).subspan(carried, elements));
  return step;
}

ScanGradient TraceGradient(const TracedScan& scan, bool of_kept) {
  ScanGradient gradient;
  FindWanted(scan, gradient);
  gradient.refused = WhyNotDifferentiable([&] {
    gradient.step = scan.trace->Continue(scan.trace->name() + "_gradient",
                                         [&] { return BackwardStep(scan, gradient, of_kept); });
  });
  return gradient;
}

// The positions of the carried tensors that backward uses as the steps were given them.
Positions UsedCarried(const TracedScan& scan, const ScanGradient& gradient) {
  const std::size_t first = gradient.carried.size() + gradient.others.size();
  Positions used;
  if (!gradient.refused.ok()) return used;
  for (std::size_t i = 0; i < scan.carried; ++i)
    if (gradient.step.Uses(first + i)) used.push_back(i);
  return used;
}

// A scan and its derivatives: what its history keeps.
class DifferentiatedScan {
 public:
  DifferentiatedScan(TracedScan scan, ScanGradient gradient)
      : scan_(std::move(scan)),
        gradient_(std::move(gradient)),
        kept_(UsedCarried(scan_, gradient_)),
        outside_(scan_.step.outside) {
    PositionsIn(outside_, gradient_.step.outside, Match::kElements);
  }

  const Positions& kept() const { return kept_; }
  // The inputs that get gradients: of the carried tensors, the arrays, the others.
  Positions Wanted() const {
    Positions wanted = gradient_.carried;
    for (const std::size_t i : gradient_.elements) wanted.push_back(scan_.carried + i);
    for (const std::size_t i : gradient_.others) wanted.push_back(scan_.inputs() + i);
    return wanted;
  }
  // The arguments that backward uses, behind what was kept.
  Tensors Saved(const ScanTensors& tensors) const {
    Tensors saved = tensors.init;
    Append(saved, tensors.xs);
    Append(saved, tensors.fixed);
    Append(saved, tensors.outside);
    const Tensors more(outside_.begin() + static_cast<std::ptrdiff_t>(tensors.outside.size()),
                       outside_.end());
    Append(saved, WithState(more, scan_.device));
    return saved;
  }
  Tensors Backward(const Tensors& saved, absl::Span<const Tensor> dys) const;
  Tensors Forward(const Tensors& saved, absl::Span<const Tensor> tangents,
                  const std::vector<bool>& asked) const;

 private:
  Tensors CotangentsOf(absl::Span<const Tensor> dys, const Positions& positions) const;
  absl::Span<const Tensor> Part(const Tensors& saved, std::size_t first, std::size_t count) const {
    return absl::MakeConstSpan(saved).subspan(kept_.size() + first, count);
  }
  std::size_t fixed() const { return scan_.step.values.parameters.size() - scan_.inputs(); }
  Tensors Outside(const Stage& stage, const Tensors& saved) const {
    const std::size_t first = scan_.inputs() + fixed();
    return ArgumentsFor(stage.outside, outside_, Part(saved, first, outside_.size()));
  }
  TracedValues ForwardStep(const std::vector<bool>& asked) const;

  TracedScan scan_;
  ScanGradient gradient_;
  Positions kept_;
  Tensors outside_;
};

// Zeros for an element of each step.
Tensor ZerosOfSteps(const TracedScan& scan, const Shape& element) {
  Dims dims(element.dims().begin(), element.dims().end());
  dims.insert(dims.begin(), scan.count);
  return ZerosOf(Shape(element.dtype(), dims), scan.device);
}

Tensors DifferentiatedScan::CotangentsOf(absl::Span<const Tensor> dys,
                                         const Positions& positions) const {
  Tensors cotangents;
  for (const std::size_t i : positions) {
    const Shape& shape = scan_.step.program->results()[i];
    cotangents.push_back(dys[i].defined()     ? dys[i]
                         : i >= scan_.carried ? ZerosOfSteps(scan_, shape)
                                              : ZerosOf(shape, scan_.device));
  }
  return cotangents;
}

Tensors DifferentiatedScan::Backward(const Tensors& saved, absl::Span<const Tensor> dys) const {
  const absl::Span<const Tensor> of_kept = dys.subspan(scan_.results());
  const bool has_kept =
      std::any_of(of_kept.begin(), of_kept.end(), [](const Tensor& dy) { return dy.defined(); });
  const ScanGradient gradient =
      GradEnabled() || has_kept ? TraceGradient(scan_, has_kept) : gradient_;
  ThrowIfError(gradient.refused);
  if (UsedCarried(scan_, gradient).size() > kept_.size())
    ThrowRecordError(scan_.name, ir::Internal("backward uses a carried tensor that was not kept"));
  ScanTensors given;
  given.init = CotangentsOf(dys, gradient.carried);
  const Tensors others = scan_.step.Others(scan_.inputs());
  for (const std::size_t i : gradient.others)
    given.init.push_back(ZerosOf(others[i].shape(), scan_.device));
  given.xs.resize(scan_.carried);
  Tensors of_given(scan_.carried);
  for (std::size_t k = 0; k < kept_.size(); ++k) {
    given.xs[kept_[k]] = saved[k];
    of_given[kept_[k]] = of_kept[k];
  }
  Append(given.xs, Part(saved, scan_.carried, scan_.over));
  Append(given.xs, CotangentsOf(dys, gradient.further));
  if (has_kept) {
    for (const std::size_t i : gradient.carried)
      given.xs.push_back(of_given[i].defined()
                             ? of_given[i]
                             : ZerosOfSteps(scan_, scan_.step.program->parameters()[i]));
  }
  Append(given.fixed, Part(saved, scan_.inputs(), fixed()));
  given.outside = Outside(gradient.step, saved);
  TracedScan back = scan_;
  back.name += "_backward";
  back.step = gradient.step;
  back.carried = given.init.size();
  back.over = given.xs.size();
  back.reverse = !scan_.reverse;
  const Tensors made = RunScan(back, given);
  Tensors gradients(scan_.inputs() + fixed() + scan_.step.outside.size());
  std::size_t next = 0;
  for (const std::size_t i : gradient.carried) gradients[i] = made[next++];
  for (const std::size_t i : gradient.others) gradients[scan_.inputs() + i] = made[next++];
  for (const std::size_t i : gradient.elements) gradients[scan_.carried + i] = made[next++];
  return gradients;
}

// The step with tangents behind the carried tensors, the elements and the others, and behind the
// results.
TracedValues DifferentiatedScan::ForwardStep(const std::vector<bool>& asked) const {
  const absl::Span<const Tensor> given = scan_.step.values.parameters;
  const Tensors wanted = WantedOf(scan_, gradient_);
  const std::size_t carried = gradient_.carried.size(), elements = gradient_.elements.size();
  Tensors tangents;
  for (const Tensor& tensor : wanted) tangents.push_back(scan_.trace->Parameter(tensor.shape()));
  const absl::Span<const Tensor> all = tangents;
  TracedValues step;
  Append(step.parameters, given.first(scan_.carried));
  Append(step.parameters, all.first(carried));
  Append(step.parameters, given.subspan(scan_.carried, scan_.over));
  Append(step.parameters, all.subspan(carried, elements));
  Append(step.parameters, given.subspan(scan_.inputs()));
  Append(step.parameters, all.subspan(carried + elements));
  const Tensors made = TangentsOf(scan_.step.values.results, wanted, tangents);
  const absl::Span<const Tensor> results = scan_.step.values.results, of_results = made;
  Append(step.results, results.first(scan_.carried));
  Append(step.results, of_results.first(carried));
  Append(step.results, results.subspan(scan_.carried));
  Append(step.results, of_results.subspan(carried));
  for (std::size_t k = 0; k < kept_.size(); ++k) {
    if (!asked[scan_.results() + k]) continue;
    const auto at = std::find(gradient_.carried.begin(), gradient_.carried.end(), kept_[k]);
    step.results.push_back(tangents[static_cast<std::size_t>(at - gradient_.carried.begin())]);
  }
  return step;
}

Tensors DifferentiatedScan::Forward(const Tensors& saved, absl::Span<const Tensor> tangents,
                                    const std::vector<bool>& asked) const {
  TracedScan ahead = scan_;
  ahead.name += "_forward";
  ahead.step =
      scan_.trace->Continue(scan_.trace->name() + "_tangents", [&] { return ForwardStep(asked); });
  const std::size_t carried = gradient_.carried.size(), elements = gradient_.elements.size();
  ScanTensors given;
  Append(given.init, Part(saved, 0, scan_.carried));
  Append(given.init, tangents.first(carried));
  Append(given.xs, Part(saved, scan_.carried, scan_.over));
  Append(given.xs, tangents.subspan(carried, elements));
  Append(given.fixed, Part(saved, scan_.inputs(), fixed()));
  Append(given.fixed, tangents.subspan(carried + elements));
  given.outside = Outside(ahead.step, saved);
  ahead.carried = given.init.size();
  ahead.over = given.xs.size();
  const Tensors made = RunScan(ahead, given);
  Tensors found(scan_.results() + kept_.size());
  std::size_t next = scan_.carried;
  for (const std::size_t i : gradient_.carried) found[i] = made[next++];
  next += scan_.results() - scan_.carried;
  for (const std::size_t i : gradient_.further) found[i] = made[next++];
  for (std::size_t k = 0; k < kept_.size(); ++k)
    if (asked[scan_.results() + k]) found[scan_.results() + k] = made[next++];
  return found;
}

}  // namespace

Tensors RunScan(TracedScan scan, const ScanTensors& given) {
  Tensors inputs = given.init, arguments;
  Append(inputs, given.xs);
  Append(inputs, given.fixed);
  Append(inputs, given.outside);
  scan.absent.clear();
  for (std::size_t i = 0; i < given.xs.size(); ++i)
    if (!given.xs[i].defined()) scan.absent.push_back(i);
  std::shared_ptr<const DifferentiatedScan> derivatives;
  if (scan.trace->is_differentiable() && WantsGradient(inputs)) {
    const GradModeGuard no_history(false);
    ScanGradient gradient = TraceGradient(scan, /*of_kept=*/false);
    if (scan.is_first) scan.blocks = std::max(scan.blocks, gradient.step.blocks);
    scan.is_first = false;
    derivatives = std::make_shared<const DifferentiatedScan>(scan, std::move(gradient));
  }
  const std::size_t first_outside = scan.step.values.parameters.size();
  StepParts parts{.step = scan.step.At(first_outside, scan.blocks),
                  .carried = scan.carried,
                  .over = scan.over,
                  .count = scan.count,
                  .order = scan.reverse ? StepOrder::kBackward : StepOrder::kForward,
                  .absent = scan.absent};
  std::copy_if(inputs.begin(), inputs.end(), std::back_inserter(arguments),
               [](const Tensor& input) { return input.defined(); });
  if (derivatives) parts.kept = derivatives->kept();
  Tensors results =
      CallWithoutHistory(ValueOrThrow(StepProgram(scan.name, parts)), arguments, scan.device);
  if (!derivatives) return results;
  Tensors saved(results.begin() + static_cast<std::ptrdiff_t>(scan.results()), results.end());
  Append(saved, derivatives->Saved(given));
  AttachHistory({.name = scan.name,
                 .wanted = derivatives->Wanted(),
                 .backward =
                     [derivatives](const Tensors& all, absl::Span<const Tensor> dys) {
                       return derivatives->Backward(all, dys);
                     },
                 .forward =
                     [derivatives](const Tensors& all, absl::Span<const Tensor> tangents,
                                   const std::vector<bool>& asked) {
                       return derivatives->Forward(all, tangents, asked);
                     }},
                inputs, saved, results);
  results.resize(scan.results());
  return results;
}

}  // namespace lazuli::lazy
