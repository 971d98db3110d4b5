#include "lazy/control/loops.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "lazy/control/scan.h"
#include "lazy/control/scan_blocks.h"
#include "lazy/ops/core/functions.h"
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

TracedScan ScanOf(const ScanArguments& given, const TracingPtr& trace) {
  return {.name = given.name,
          .device = given.device,
          .trace = trace,
          .step = trace->function(),
          .carried = given.init.size(),
          .over = given.xs.size(),
          .count = given.count,
          .reverse = given.reverse,
          .blocks = trace->function().blocks};
}

// A loop that was traced: what goes on for as long as `more` of the carried tensors holds, and
// `next`, which gives them anew.
struct TracedWhile {
  std::string name;
  backend::Device device;
  TracingPtr more_trace, next_trace;
  Stage more, next;
  std::string no_backward;  // why there is none

  std::size_t carried() const { return next.values.parameters.size(); }
};
struct WhileTensors {
  Tensors init, of_more, of_next;  // the last two from outside
};
Tensors RunWhile(TracedWhile loop, const WhileTensors& given);

// Forward mode of a loop: the loop that carries tangents behind what is carried, and those of tensors
// from outside, which stay the same.
class ForwardWhile {
 public:
  explicit ForwardWhile(TracedWhile loop)
      : loop_(std::move(loop)),
        carried_(WithHistory(loop_.next.values.parameters)),
        outside_(WithHistory(loop_.next.outside)) {}

  // The inputs that get tangents, of the carried tensors, those of `more` and those of `next`.
  std::vector<std::size_t> Wanted() const {
    std::vector<std::size_t> wanted = carried_;
    for (const std::size_t i : outside_)
      wanted.push_back(loop_.carried() + loop_.more.outside.size() + i);
    return wanted;
  }
  Tensors Tangents(const Tensors& saved, absl::Span<const Tensor> tangents) const {
    TracedWhile ahead = loop_;
    ahead.name += "_forward";
    ahead.next = loop_.next_trace->Continue(loop_.next_trace->name() + "_tangents",
                                            [&] { return NextWithTangents(); });
    ahead.more = loop_.more_trace->Continue(loop_.more_trace->name() + "_tangents",
                                            [&] { return MoreWithTangents(); });
    const absl::Span<const Tensor> all = saved;
    const std::size_t of_more = loop_.more.outside.size();
    WhileTensors given;
    Append(given.init, all.first(loop_.carried()));
    Append(given.init, tangents);
    given.of_more =
        ArgumentsFor(ahead.more.outside, loop_.more.outside, all.subspan(loop_.carried(), of_more));
    given.of_next = ArgumentsFor(ahead.next.outside, loop_.next.outside,
                                 all.subspan(loop_.carried() + of_more));
    const Tensors made = RunWhile(ahead, given);
    Tensors found(loop_.carried());
    for (std::size_t k = 0; k < carried_.size(); ++k)
      found[carried_[k]] = made[loop_.carried() + k];
    return found;
  }

 private:
  TracedValues NextWithTangents() const {
    const TracedValues& next = loop_.next.values;
    Tensors wanted = AtPositions(next.parameters, carried_), tangents;
    Append(wanted, AtPositions(loop_.next.outside, outside_));
    for (const Tensor& tensor : wanted)
      tangents.push_back(loop_.next_trace->Parameter(tensor.shape()));
    TracedValues both = next;
    Append(both.parameters, tangents);
    Append(both.results, TangentsOf(next.results, wanted, tangents));
    Append(both.results, absl::MakeConstSpan(tangents).subspan(carried_.size()));
    return both;
  }
  TracedValues MoreWithTangents() const {
    TracedValues more = loop_.more.values;
    for (const std::size_t i : carried_)
      more.parameters.push_back(loop_.more_trace->Parameter(more.parameters[i].shape()));
    for (const std::size_t i : outside_)
      more.parameters.push_back(loop_.more_trace->Parameter(loop_.next.outside[i].shape()));
    return more;
  }

  TracedWhile loop_;
  std::vector<std::size_t> carried_, outside_;
};

Tensors RunWhile(TracedWhile loop, const WhileTensors& given) {
  Tensors inputs = given.init;
  Append(inputs, given.of_more);
  Append(inputs, given.of_next);
  const WhileParts parts{.more = loop.more.At(loop.carried(), loop.more_trace->function().blocks),
                         .next = loop.next.At(loop.carried(), loop.next_trace->function().blocks),
                         .carried = loop.carried()};
  Tensors results =
      CallWithoutHistory(ValueOrThrow(WhileProgram(loop.name, parts)), inputs, loop.device);
  if (!WantsGradient(inputs)) return results;
  const auto ahead = std::make_shared<const ForwardWhile>(loop);
  AttachHistory(
      {.name = loop.name,
       .wanted = ahead->Wanted(),
       .backward = [name = loop.name, why = loop.no_backward](const Tensors&,
                                                              absl::Span<const Tensor>) -> Tensors {
         ThrowRecordError(name, Unimplemented(why));
       },
       .forward = [ahead](const Tensors& saved, absl::Span<const Tensor> tangents,
                          const std::vector<bool>&) { return ahead->Tangents(saved, tangents); }},
      inputs, inputs, results);
  return results;
}

// A loop over numbers as one that goes on while the number is below the upper bound; both are
// carried, behind the others.
Tensors RunFor(const ForArguments& given, const TracingPtr& trace) {
  Tensors carried = given.init;
  carried.push_back(given.lower.tensor);
  carried.push_back(given.upper.tensor);
  const auto more = std::make_shared<Tracing>(
      given.name + "_more", ParametersLike(carried, false), given.device,
      [](absl::Span<const Tensor> in) { return Tensors{Lt(in[in.size() - 2], in.back())}; });
  TracedWhile loop{.name = given.name,
                   .device = given.device,
                   .more_trace = more,
                   .next_trace = trace,
                   .more = more->function(),
                   .next = trace->Continue(
                       given.name + "_step",
                       [&] {
                         TracedValues next = trace->function().values;
                         const Tensor number = next.parameters.back();
                         const Tensor upper = trace->Parameter(given.upper.tensor.shape());
                         next.parameters.push_back(upper);
                         next.results.push_back(Add(number, Constant(1, DType::kS64)));
                         next.results.push_back(upper);
                         return next;
                       },
                       Capture::OwnEffects::kAgain),
                   .no_backward =
                       "backward needs the number of steps, and a bound of this loop is a tensor; "
                       "give both bounds as numbers, or use scan"};
  const WhileTensors tensors{.init = carried,
                             .of_more = WithState(loop.more.outside, given.device),
                             .of_next = WithState(loop.next.outside, given.device)};
  Tensors results = RunWhile(loop, tensors);
  results.resize(given.init.size());
  return results;
}

}  // namespace

Tensors Scan(const ScanArguments& arguments, TracedFunction function) {
  std::vector<TracedParameter> parameters = ParametersLike(arguments.init, true);
  for (const Tensor& x : arguments.xs) {
    const Shape element(x.dtype(), x.shape().dims().subspan(1));
    parameters.push_back({element, WantsGradient({x})});
  }
  const auto trace = std::make_shared<Tracing>(
      arguments.name, parameters, arguments.device, [&](absl::Span<const Tensor> in) {
        Tensors results = function(in);
        CheckCarried(arguments.name, arguments.init, results, true);
        return results;
      });
  const TracedScan scan = ScanOf(arguments, trace);
  const ScanTensors given{.init = arguments.init,
                          .xs = arguments.xs,
                          .fixed = {},
                          .outside = WithState(trace->function().outside, arguments.device)};
  const bool keeps =
      WantsGradient(given.init) || WantsGradient(given.xs) || WantsGradient(given.outside);
  if (arguments.every > 1 && arguments.count > 1 && keeps)
    return RunScanInBlocks(scan, given, arguments.every);
  return RunScan(scan, given);
}

Tensors ForLoop(const ForArguments& given, TracedFunction function) {
  const std::size_t carried = given.init.size();
  std::vector<TracedParameter> parameters = ParametersLike(given.init, true);
  parameters.push_back({Shape(DType::kS64)});
  const auto trace = std::make_shared<Tracing>(
      given.name, parameters, given.device, [&](absl::Span<const Tensor> in) {
        Tensors numbered{in[carried]};
        Append(numbered, in.first(carried));
        Tensors results = function(numbered);
        CheckCarried(given.name, given.init, results, false);
        return results;
      });
  Tensors arguments = given.init;
  for (const Tensor& tensor : trace->function().outside)
    if (tensor.defined()) arguments.push_back(tensor);
  if (!WantsGradient(arguments) || !given.lower.number || !given.upper.number)
    return RunFor(given, trace);
  const int64_t first = *given.lower.number,
                count = std::max<int64_t>(0, *given.upper.number - first);
  const Tensor numbers = Add(Arange(count, DType::kS64, given.device),
                             Constant(static_cast<double>(first), DType::kS64));
  const ScanArguments scan{.name = given.name,
                           .init = given.init,
                           .xs = {numbers},
                           .count = count,
                           .device = given.device};
  return RunScan(ScanOf(scan, trace),
                 {.init = given.init,
                  .xs = {numbers},
                  .fixed = {},
                  .outside = WithState(trace->function().outside, given.device)});
}

Tensors WhileLoop(const std::string& name, const Tensors& init, backend::Device device,
                  TracedFunction more, TracedFunction next) {
  const auto condition = std::make_shared<Tracing>(
      name + "_cond", ParametersLike(init, false), device, [&](absl::Span<const Tensor> in) {
        Tensors results = more(in);
        const bool is_pred = results.size() == 1 && results[0].defined() &&
                             results[0].dtype() == DType::kPred && results[0].rank() == 0;
        if (is_pred) return results;
        ThrowRecordError(name,
                         InvalidArgument("the condition must return one bool without dims, not ",
                                         results.size() == 1 && results[0].defined()
                                             ? results[0].shape().ToString()
                                             : Str(results.size(), " tensors")));
      });
  const auto body = std::make_shared<Tracing>(name + "_body", ParametersLike(init, true), device,
                                              [&](absl::Span<const Tensor> in) {
                                                Tensors results = next(in);
                                                CheckCarried(name, init, results, false);
                                                return results;
                                              });
  const WhileTensors given{.init = init,
                           .of_more = WithState(condition->function().outside, device),
                           .of_next = WithState(body->function().outside, device)};
  return RunWhile({.name = name,
                   .device = device,
                   .more_trace = condition,
                   .next_trace = body,
                   .more = condition->function(),
                   .next = body->function(),
                   .no_backward = "backward through a loop needs the number of its steps, which "
                                  "only a run of this one tells; use scan, or fori_loop with "
                                  "numbers as bounds"},
                  given);
}

}  // namespace lazuli::lazy
