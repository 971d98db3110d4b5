#include "lowering/passes/expand_scans.h"

#include <utility>
#include <vector>

#include "lowering/builder/builder.h"
#include "lowering/passes/rewriter.h"

namespace lazuli::lowering {
namespace {

using hlo::Computation;
using hlo::Instruction;

// How a scan's parts lie in the loop's state: position, inputs, carries, results.
struct ScanPlan {
  explicit ScanPlan(const Instruction& scan)
      : attrs(scan.attrs_as<hlo::ScanAttrs>()),
        carries(attrs.num_carries),
        inputs(scan.operand_count() - carries),
        results(static_cast<int64_t>(scan.shape().tuple().size()) - carries) {
    std::vector<Shape> parts = {Shape(DType::kS32)};
    for (const Instruction* operand : scan.operands())
      parts.push_back(operand->shape().WithDefaultLayout());
    for (int64_t k = 0; k < results; ++k)
      parts.push_back(scan.shape().tuple()[static_cast<std::size_t>(k)].WithDefaultLayout());
    if (inputs + results > 0) {
      const Shape& scanned = inputs > 0 ? parts[1] : parts.back();
      length = scanned.dim(attrs.dimension);
    }
    state = Shape::Tuple(std::move(parts));
  }
  int64_t carry(int64_t k) const { return 1 + inputs + k; }
  int64_t result(int64_t k) const { return 1 + inputs + carries + k; }

  const hlo::ScanAttrs& attrs;
  int64_t carries, inputs, results;
  int64_t length = 0;
  Shape state;
};

absl::StatusOr<Computation*> Condition(hlo::Module& module, const ScanPlan& plan) {
  Builder b(&module, "scan_condition");
  const Op position = b.GetTupleElement(b.Parameter(0, plan.state), 0);
  return b.Finish(b.Compare(hlo::ComparisonDirection::kLt, position,
                            b.Scalar(DType::kS32, static_cast<double>(plan.length))));
}

// Start indices of the slice at `position`.
Ops Starts(Builder& b, const Shape& array, int64_t dimension, Op position) {
  Ops starts(static_cast<std::size_t>(array.rank()), b.Scalar(DType::kS32, 0));
  starts[static_cast<std::size_t>(dimension)] = position;
  return starts;
}

Op SliceAt(Builder& b, Op array, int64_t dimension, Op position) {
  Dims sizes(array.shape().dims().begin(), array.shape().dims().end());
  sizes[static_cast<std::size_t>(dimension)] = 1;
  const Op slice = b.DynamicSlice(array, Starts(b, array.shape(), dimension, position), sizes);
  sizes.erase(sizes.begin() + dimension);
  return b.Reshape(slice, sizes);
}

Op WithSliceAt(Builder& b, Op array, Op slice, int64_t dimension, Op position) {
  Dims dims(array.shape().dims().begin(), array.shape().dims().end());
  dims[static_cast<std::size_t>(dimension)] = 1;
  return b.DynamicUpdateSlice(array, b.Reshape(slice, dims),
                              Starts(b, array.shape(), dimension, position));
}

absl::StatusOr<Computation*> Body(hlo::Module& module, const Instruction& scan,
                                  const ScanPlan& plan) {
  Builder b(&module, "scan_body");
  const int64_t dimension = plan.attrs.dimension;
  const Op state = b.Parameter(0, plan.state);
  const Op step = b.GetTupleElement(state, 0);
  const auto last = static_cast<double>(plan.length - 1);
  const Op position = plan.attrs.is_reverse ? b.Minus(b.Scalar(DType::kS32, last), step) : step;
  Ops next = {b.Plus(step, b.Scalar(DType::kS32, 1))}, arguments;
  for (int64_t k = 0; k < plan.inputs; ++k) {
    next.push_back(b.GetTupleElement(state, 1 + k));
    arguments.push_back(SliceAt(b, next.back(), dimension, position));
  }
  for (int64_t k = 0; k < plan.carries; ++k)
    arguments.push_back(b.GetTupleElement(state, plan.carry(k)));
  const Op values = b.Call(scan.to_apply(), arguments);
  for (int64_t k = 0; k < plan.carries; ++k)
    next.push_back(b.GetTupleElement(values, plan.results + k));
  for (int64_t k = 0; k < plan.results; ++k) {
    next.push_back(WithSliceAt(b, b.GetTupleElement(state, plan.result(k)),
                               b.GetTupleElement(values, k), dimension, position));
  }
  return b.Finish(b.Tuple(next));
}

absl::StatusOr<Instruction*> Loop(hlo::Module& module, const Instruction& scan,
                                  const ScanPlan& plan, const std::vector<Instruction*>& init,
                                  Rewriter& r) {
  LAZULI_ASSIGN_OR_RETURN(Computation* const condition, Condition(module, plan));
  LAZULI_ASSIGN_OR_RETURN(Computation* const body, Body(module, scan, plan));
  Instruction* const state = r.Add(hlo::Opcode::kTuple, plan.state, init);
  return r.Add(hlo::Opcode::kWhile, plan.state, {state}, hlo::NoAttrs{}, {condition, body});
}

absl::Status Expand(hlo::Module& module, Instruction* scan, Rewriter& r) {
  const ScanPlan plan(*scan);
  r.set_origin(scan);
  std::vector<Instruction*> init = {r.Scalar(DType::kS32, 0)};
  init.insert(init.end(), scan->operands().begin(), scan->operands().end());
  for (int64_t k = 0; k < plan.results; ++k)
    init.push_back(r.Full(plan.state.tuple()[static_cast<std::size_t>(plan.result(k))], 0));
  std::vector<Instruction*> final = init;
  if (plan.length > 0) {
    LAZULI_ASSIGN_OR_RETURN(Instruction* const loop, Loop(module, *scan, plan, init, r));
    for (std::size_t k = 0; k < final.size(); ++k) {
      final[k] = r.Add(hlo::Opcode::kGetTupleElement, plan.state.tuple()[k], {loop},
                       hlo::TupleIndexAttrs{static_cast<int64_t>(k)});
    }
  }
  std::vector<Instruction*> values;
  for (int64_t k = 0; k < plan.results; ++k)
    values.push_back(final[static_cast<std::size_t>(plan.result(k))]);
  for (int64_t k = 0; k < plan.carries; ++k)
    values.push_back(final[static_cast<std::size_t>(plan.carry(k))]);
  r.Replace(scan, r.Add(hlo::Opcode::kTuple, scan->shape().WithDefaultLayout(), values));
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<bool> ExpandScans::Run(hlo::Module& module) {
  bool changed = false;
  for (Computation* computation : module.PostOrder()) {
    std::vector<Instruction*> scans;
    for (const auto& i : computation->instructions()) {
      if (i->opcode() == hlo::Opcode::kScan && i->control_predecessors().empty())
        scans.push_back(i.get());
    }
    if (scans.empty()) continue;
    Rewriter r(computation);
    for (Instruction* scan : scans) LAZULI_RETURN_IF_ERROR(Expand(module, scan, r));
    changed |= r.changed();
  }
  return changed;
}

}  // namespace lazuli::lowering
