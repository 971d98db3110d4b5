// The batch rule of custom calls: what is known to take leading dims gets one more of them, anything else
// runs once for each sample.
#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

#include "ir/hlo/text/parser.h"
#include "lowering/transforms/batch_rules.h"
#include "lowering/transforms/custom_rules.h"

namespace lazuli::lowering {
namespace {

// Calls whose arrays have batch dims in front: those of LAPACK, and the ones that torch_xla and XLA name.
bool TakesBatchDims(std::string_view target) {
  constexpr std::string_view kOthers[] = {
      "Qr",   "Eigh",     "ProductOfElementaryHouseholderReflectors",
      "TopK", "Sharding", "annotate_device_placement",
  };
  return (target.starts_with("lapack_") && target.ends_with("_ffi")) ||
         std::find(std::begin(kOthers), std::end(kOthers), target) != std::end(kOthers);
}

// With the batch dim as the one that changes slowest.
Shape BatchedWithLayout(const BatchScope& s, const Shape& shape) {
  if (shape.IsTuple()) {
    std::vector<Shape> elements;
    for (const Shape& element : shape.tuple()) elements.push_back(BatchedWithLayout(s, element));
    return Shape::Tuple(std::move(elements));
  }
  const Shape batched = s.Batched(shape);
  if (!shape.has_layout()) return batched;
  Dims order = Shifted(shape.minor_to_major());
  order.push_back(0);
  return batched.WithLayout(order);
}

// Whether the result of a rule repeats one value for all samples.
bool IsRepeated(const hlo::Instruction& result) {
  if (result.opcode() != hlo::Opcode::kBroadcast) return false;
  const Dims& kept = result.attrs_as<hlo::DimensionsAttrs>().dimensions;
  return std::find(kept.begin(), kept.end(), 0) == kept.end();
}

Op OneSample(BatchScope& s, Op batch) {
  const Shape shape = batch.shape();  // NOLINT: a copy, for the original moves
  Dims limits(shape.dims().begin(), shape.dims().end());
  limits[0] = 1;
  const Op first = s.b.Slice(batch, Dims(limits.size(), 0), limits, Dims(limits.size(), 1));
  return s.b.Reshape(first, shape.dims().subspan(1));
}

// What the user's rule for batches computes. What it repeats for all samples has no batch dim.
BatchValue ByUserRule(BatchScope& s, const hlo::Instruction& i, const CustomCallRules& rules,
                      BatchValues operands) {
  std::vector<bool> batched;
  std::vector<Op> arguments;
  for (const BatchValue& operand : operands) {
    batched.push_back(operand.batched);
    arguments.push_back(operand.op);
  }
  const auto module = rules.batch(i, batched, s.size());
  if (!module.ok()) return s.Error(module.status());
  const Op all = s.b.Call(hlo::AddCopy(**module, *s.b.module()), arguments);
  const auto result_of = [&](std::size_t k) {
    const Op result = s.b.GetTupleElement(all, static_cast<int64_t>(k));
    if (s.size() == 0 || !IsRepeated(*(*module)->entry()->root()->operand(k)))
      return BatchScope::Array(result);
    return BatchScope::Array(OneSample(s, result), false);
  };
  if (!i.shape().IsTuple()) return result_of(0);
  BatchValue results{.is_tuple = true};
  for (std::size_t k = 0; k < i.shape().tuple().size(); ++k)
    results.elements.push_back(result_of(k));
  return results;
}

}  // namespace

BatchValue BatchCustomCall(BatchScope& s, const hlo::Instruction& i, BatchValues operands) {
  hlo::CustomCallAttrs attrs = i.attrs_as<hlo::CustomCallAttrs>();
  const std::string_view target = attrs.custom_call_target;
  if (const auto rules = FindCustomCallRules(attrs); rules != nullptr && rules->batch)
    return ByUserRule(s, i, *rules, operands);
  if (i.HasSideEffect() && attrs.host == nullptr) {  // a callback says how it is called
    return s.Error(
        Unimplemented("vmap: custom call ", target, " has side effects and no rule for batches"));
  }
  std::vector<Op> full;
  if (target == "lazuli.check_index_range" && !operands[1].batched) {
    full = {s.Full(operands[0]), operands[1].op};
  } else if (TakesBatchDims(target)) {
    full = s.FullOperands(operands);
  } else {
    return LoopOverSamples(s, i, operands);
  }
  if (!attrs.operand_layout_constraints.empty()) {
    const auto shapes = hlo::ParseShape(Str("(", attrs.operand_layout_constraints, ")"));
    if (!shapes.ok()) return s.Error(shapes.status());
    std::vector<std::string> layouts;
    for (const Shape& shape : shapes->tuple())
      layouts.push_back(BatchedWithLayout(s, shape).ToString(/*with_layout=*/true));
    attrs.operand_layout_constraints = Join(layouts, ", ");
  }
  const Shape shape = BatchedWithLayout(s, i.shape());
  const Op call = s.b.Add(i.opcode(), full, std::move(attrs), {}, &shape);
  if (call.instruction() != nullptr) call.instruction()->mutable_extra_attrs() = i.extra_attrs();
  return s.Split(call, true);
}

}  // namespace lazuli::lowering
