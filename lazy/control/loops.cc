#include "lazy/control/loops.h"

#include <algorithm>
#include <utility>

#include "lazy/autograd/custom.h"
#include "lazy/ops/core/functions.h"
#include "lazy/ops/program/call.h"
#include "lazy/tensor/status_error.h"

namespace lazuli::lazy {
namespace {

std::vector<TracedParameter> ParametersLike(const Tensors& tensors, bool differentiable) {
  std::vector<TracedParameter> parameters;
  for (const Tensor& tensor : tensors) parameters.push_back({tensor.shape(), differentiable});
  return parameters;
}

// The carried tensors are again what they were, but for their elements.
void CheckCarried(const std::string& name, const Tensors& init, const Tensors& results,
                  bool has_more) {
  if (results.size() < init.size() || (!has_more && results.size() != init.size())) {
    ThrowRecordError(name, InvalidArgument("the function is given ", init.size(),
                                           " carried tensors and returns ", results.size(),
                                           "; it must return each of them anew"));
  }
  for (std::size_t i = 0; i < init.size(); ++i) {
    if (!results[i].defined())
      ThrowRecordError(name, InvalidArgument("carried tensor ", i, " is returned undefined"));
    if (results[i].shape().dims() == init[i].shape().dims() &&
        results[i].dtype() == init[i].dtype())
      continue;
    ThrowRecordError(
        name, InvalidArgument("carried tensor ", i, " is ", init[i].shape(), " before a step, and ",
                              results[i].shape(), " after it; shape and dtype must stay the same"));
  }
}

// Steps that were traced, with carried tensors before elements.
struct TracedScan {
  ScanArguments given;
  Traced traced;

  std::size_t carried() const { return given.init.size(); }
  std::size_t over() const { return given.xs.size(); }
  std::size_t results() const { return traced.function.program->results().size(); }
  bool IsDifferentiable(std::size_t result) const {
    return lazy::IsDifferentiable(traced.function.program->results()[result]);
  }
  StepOrder order() const { return given.reverse ? StepOrder::kBackward : StepOrder::kForward; }
};

// The step of the loop that goes back: cotangents of the carried tensors and sums of the gradients
// of tensors from outside are carried; it takes the carried tensors as the step was given them,
// elements, and cotangents of the further results. `takes`: the positions of the gradient's tensors
// from outside.
class BackwardStep {
 public:
  BackwardStep(const TracedScan& scan, const Tensors& others, std::vector<std::size_t> takes)
      : scan_(scan), takes_(std::move(takes)) {
    const Program& step = *scan.traced.function.program;
    for (std::size_t i = 0; i < scan.carried(); ++i)
      if (scan.IsDifferentiable(i)) shapes_.push_back(step.parameters()[i]);
    gradients_ = shapes_.size();
    for (const std::size_t i : scan.traced.outside) shapes_.push_back(others[i].shape());
    carried_ = shapes_.size();
    const std::size_t inputs = scan.carried() + scan.over();
    shapes_.insert(shapes_.end(), step.parameters().begin(),
                   step.parameters().begin() + static_cast<std::ptrdiff_t>(inputs));
    for (std::size_t i = scan.carried(); i < scan.results(); ++i)
      if (scan.IsDifferentiable(i)) shapes_.push_back(step.results()[i]);
    others_ = shapes_.size();
    for (const std::size_t i : takes_) shapes_.push_back(others[i].shape());
  }

  ProgramPtr Made(const std::string& name) const {
    const Part step{Composed(name + "_step", shapes_, scan_.given.device,
                             [&](absl::Span<const Tensor> given) { return Call(given); }),
                    scan_.traced.gradient.At(others_).states};
    return ValueOrThrow(StepProgram(
        name, {.step = step,
               .carried = carried_,
               .over = others_ - carried_,
               .count = scan_.given.count,
               .order = scan_.given.reverse ? StepOrder::kForward : StepOrder::kBackward}));
  }

 private:
  Tensors Call(absl::Span<const Tensor> given) const {
    const std::size_t inputs = scan_.carried() + scan_.over();
    Tensors arguments;
    Append(arguments, given.subspan(carried_, inputs));
    Append(arguments, given.first(gradients_));
    Append(arguments, given.subspan(carried_ + inputs, others_ - carried_ - inputs));
    Append(arguments, given.subspan(others_));
    const Tensors made = lazy::Call(scan_.traced.gradient.program, arguments, scan_.given.device);
    const absl::Span<const Tensor> all = made;
    const std::size_t of_elements = scan_.traced.parameters.size() - gradients_;
    Tensors results;
    Append(results, all.first(gradients_));
    for (std::size_t i = gradients_; i < carried_; ++i)
      results.push_back(Add(given[i], all[i + of_elements]));
    Append(results, all.subspan(gradients_, of_elements));
    return results;
  }

  const TracedScan& scan_;
  std::vector<std::size_t> takes_;
  std::vector<Shape> shapes_;
  std::size_t gradients_ = 0, carried_ = 0, others_ = 0;
};

// The gradients of the arguments of a scan. `saved`: what each step was given, the elements, then
// all tensors from outside.
Tensors ScanBackward(const TracedScan& scan, const std::vector<std::size_t>& takes,
                     absl::Span<const Tensor> saved, absl::Span<const Tensor> dys) {
  const std::size_t inputs = scan.carried() + scan.over();
  const Tensors others(saved.begin() + static_cast<std::ptrdiff_t>(inputs), saved.end());
  Tensors arguments;
  for (std::size_t i = 0; i < scan.carried(); ++i)
    if (scan.IsDifferentiable(i)) arguments.push_back(dys[i]);
  for (const std::size_t i : scan.traced.outside)
    arguments.push_back(FullConstant(others[i].shape().WithDefaultLayout(), 0, scan.given.device));
  Append(arguments, saved.first(inputs));
  for (std::size_t i = scan.carried(); i < scan.results(); ++i)
    if (scan.IsDifferentiable(i)) arguments.push_back(dys[i]);
  for (const std::size_t i : takes) arguments.push_back(others[i]);
  const BackwardStep step(scan, others, takes);
  const Tensors made = Call(step.Made(scan.given.name + "_backward"), arguments, scan.given.device);
  Tensors gradients(inputs + scan.traced.function.outside.size());
  std::size_t next = 0;
  const std::vector<std::size_t>& parameters = scan.traced.parameters;
  const auto first_element = std::lower_bound(parameters.begin(), parameters.end(), scan.carried());
  for (auto i = parameters.begin(); i != first_element; ++i) gradients[*i] = made[next++];
  for (const std::size_t i : scan.traced.outside) gradients[inputs + i] = made[next++];
  for (auto i = first_element; i != parameters.end(); ++i) gradients[*i] = made[next++];
  return gradients;
}

Tensors RunScan(TracedScan scan) {
  const auto& [given, traced] = scan;
  Tensors others = traced.function.outside;
  std::vector<std::size_t> takes;
  if (traced.gradient.program)
    takes = PositionsIn(others, traced.gradient.outside, Match::kElements);
  others = WithState(others, given.device);
  Tensors arguments = given.init;
  Append(arguments, given.xs);
  const std::size_t inputs = arguments.size();
  Append(arguments, absl::MakeConstSpan(others).first(traced.function.outside.size()));
  const bool wants = traced.gradient.program && WantsGradient(arguments);
  const StepParts parts{.step = traced.function.At(inputs),
                        .carried = scan.carried(),
                        .over = scan.over(),
                        .count = given.count,
                        .order = scan.order(),
                        .keeps_carried = wants};
  Tensors results =
      CallWithoutHistory(ValueOrThrow(StepProgram(given.name, parts)), arguments, given.device);
  if (!wants) return results;
  Tensors saved(results.begin() + static_cast<std::ptrdiff_t>(scan.results()), results.end());
  results.resize(scan.results());
  Append(saved, given.xs);
  Append(saved, others);
  const std::string name = given.name;
  const std::vector<CustomNode::Result> kinds(results.size());
  const auto node = MakeIntrusive<CustomNode>(
      name, arguments,
      [scan = std::move(scan), takes](const CustomNode& self, absl::Span<const Tensor> dys) {
        return ScanBackward(scan, takes, self.Saved(), dys);
      });
  node->Finish(arguments, absl::MakeSpan(results), kinds, saved);
  return results;
}

// Backward is refused, where somebody asks for it.
void RefuseBackward(const std::string& name, const Tensors& arguments, Tensors& results,
                    const std::string& why) {
  if (!WantsGradient(arguments)) return;
  const auto node = MakeIntrusive<CustomNode>(
      name, arguments, [name, why](const CustomNode&, absl::Span<const Tensor>) -> Tensors {
        ThrowRecordError(name, Unimplemented(why));
      });
  const std::vector<CustomNode::Result> kinds(results.size());
  node->Finish(arguments, absl::MakeSpan(results), kinds, {});
}

// A loop over numbers as one that goes on while the number, the last of the carried ones, is below
// the upper bound.
Tensors RunFor(const ForArguments& given, const Traced& traced) {
  const backend::Device device = given.device;
  Tensors carried = given.init;
  carried.push_back(given.lower.tensor);
  std::vector<Shape> more_takes;
  for (const Tensor& tensor : carried) more_takes.push_back(tensor.shape());
  more_takes.push_back(given.upper.tensor.shape());
  const ProgramPtr more =
      Composed(given.name + "_more", more_takes, device, [&](absl::Span<const Tensor> in) {
        return Tensors{Lt(in[carried.size() - 1], in[carried.size()])};
      });
  const Closure& function = traced.function;
  const ProgramPtr next =
      Composed(given.name + "_step", function.program->parameters(), device,
               [&](absl::Span<const Tensor> in) {
                 Tensors results = Call(function.program, in, device);
                 results.push_back(Add(in[carried.size() - 1], Constant(1, DType::kS64)));
                 return results;
               });
  Tensors arguments = carried;
  arguments.push_back(given.upper.tensor);
  Append(arguments, WithState(function.outside, device));
  Tensors results = CallWithoutHistory(
      ValueOrThrow(WhileProgram(given.name, {.more = {more},
                                             .next = {next, function.At(carried.size()).states},
                                             .carried = carried.size()})),
      arguments, device);
  results.pop_back();
  RefuseBackward(given.name, arguments, results,
                 "backward needs the number of steps, and a bound of this loop is a tensor; give "
                 "both bounds as numbers, or use scan");
  return results;
}

}  // namespace

Tensors Scan(const ScanArguments& arguments, TracedFunction function) {
  std::vector<TracedParameter> parameters = ParametersLike(arguments.init, true);
  for (const Tensor& x : arguments.xs) {
    const Shape element(x.dtype(), x.shape().dims().subspan(1));
    parameters.push_back({element, WantsGradient({x})});
  }
  Traced traced =
      TraceFunction(arguments.name, parameters, arguments.device, [&](absl::Span<const Tensor> in) {
        Tensors results = function(in);
        CheckCarried(arguments.name, arguments.init, results, true);
        return results;
      });
  return RunScan({arguments, std::move(traced)});
}

Tensors ForLoop(const ForArguments& given, TracedFunction function) {
  const std::size_t carried = given.init.size();
  std::vector<TracedParameter> parameters = ParametersLike(given.init, true);
  parameters.push_back({Shape(DType::kS64)});
  Traced traced =
      TraceFunction(given.name, parameters, given.device, [&](absl::Span<const Tensor> in) {
        Tensors numbered{in[carried]};
        Append(numbered, in.first(carried));
        Tensors results = function(numbered);
        CheckCarried(given.name, given.init, results, false);
        return results;
      });
  Tensors arguments = given.init;
  for (const Tensor& tensor : traced.function.outside)
    if (tensor.defined()) arguments.push_back(tensor);
  if (!WantsGradient(arguments) || !given.lower.number || !given.upper.number)
    return RunFor(given, traced);
  const int64_t first = *given.lower.number,
                count = std::max<int64_t>(0, *given.upper.number - first);
  const Tensor numbers = Add(Arange(count, DType::kS64, given.device),
                             Constant(static_cast<double>(first), DType::kS64));
  return RunScan({{.name = given.name,
                   .init = given.init,
                   .xs = {numbers},
                   .count = count,
                   .device = given.device},
                  std::move(traced)});
}

Tensors WhileLoop(const std::string& name, const Tensors& init, backend::Device device,
                  TracedFunction more, TracedFunction next) {
  const std::vector<TracedParameter> parameters = ParametersLike(init, false);
  const Traced condition = TraceFunction(
      name + "_cond", parameters, device,
      [&](absl::Span<const Tensor> in) {
        Tensors results = more(in);
        const bool is_pred = results.size() == 1 && results[0].defined() &&
                             results[0].dtype() == DType::kPred && results[0].rank() == 0;
        if (is_pred) return results;
        ThrowRecordError(name,
                         InvalidArgument("the condition must return one bool without dims, not ",
                                         results.size() == 1 && results[0].defined()
                                             ? results[0].shape().ToString()
                                             : Str(results.size(), " tensors")));
      },
      Differentiation::kNone);
  const Traced body = TraceFunction(
      name + "_body", parameters, device,
      [&](absl::Span<const Tensor> in) {
        Tensors results = next(in);
        CheckCarried(name, init, results, false);
        return results;
      },
      Differentiation::kNone);
  Tensors arguments = init;
  Append(arguments, WithState(condition.function.outside, device));
  Append(arguments, WithState(body.function.outside, device));
  const WhileParts parts{.more = condition.function.At(init.size()),
                         .next = body.function.At(init.size()),
                         .carried = init.size()};
  Tensors results = CallWithoutHistory(ValueOrThrow(WhileProgram(name, parts)), arguments, device);
  RefuseBackward(
      name, arguments, results,
      "backward through a loop needs the number of its steps, which only a run of this one "
      "tells; use scan, or fori_loop with numbers as bounds");
  return results;
}

}  // namespace lazuli::lazy
