#include "lowering/emit/guard_updates.h"

#include <algorithm>
#include <optional>

#include "absl/container/flat_hash_set.h"

namespace lazuli::lowering {
namespace {

using hlo::Instruction;
using hlo::Opcode;

// Whether it can be told to write nothing: a scatter by a position that no array has.
bool CanWriteNothing(const Instruction& i) {
  if (i.opcode() == Opcode::kDynamicUpdateSlice) return true;
  return i.opcode() == Opcode::kScatter && !i.shape().IsTuple() &&
         !i.attrs_as<hlo::ScatterAttrs>().scatter_dims_to_operand_dims.empty() &&
         ir::IsSigned(i.operand(1)->shape().dtype());
}

// The writes that make the parameter the output, the last one first; none if it is made otherwise.
std::vector<Instruction*> WritesTo(const Instruction* parameter, Instruction* output) {
  std::vector<Instruction*> writes;
  for (Instruction* at = output; at != parameter; at = at->operand(0)) {
    if (at->opcode() == Opcode::kCopy || at->opcode() == Opcode::kReshape) continue;
    if (!CanWriteNothing(*at)) return {};
    writes.push_back(at);
  }
  return writes;
}

// All that is computed from the instructions, and they themselves.
absl::flat_hash_set<const Instruction*> ComputedFrom(std::vector<const Instruction*> pending) {
  absl::flat_hash_set<const Instruction*> seen(pending.begin(), pending.end());
  while (!pending.empty()) {
    const Instruction* at = pending.back();
    pending.pop_back();
    for (const Instruction* user : at->users()) {
      if (seen.insert(user).second) pending.push_back(user);
    }
  }
  return seen;
}

bool LeadsToACheck(const Instruction* from, absl::Span<const RuntimeCheck> checks) {
  const auto seen = ComputedFrom({from});
  return std::any_of(checks.begin(), checks.end(), [&](const RuntimeCheck& check) {
    return seen.contains(check.offender.instruction());
  });
}

Instruction* SelectAll(Instruction* holds, Instruction* on_true, Instruction* on_false) {
  hlo::Computation& computation = *holds->parent();
  Instruction* const which =
      computation.Add(Opcode::kBroadcast, Shape(DType::kPred, on_true->shape().dims()), {holds},
                      hlo::DimensionsAttrs{});
  return computation.Add(Opcode::kSelect, on_true->shape(), {which, on_true, on_false});
}

// Makes the write one of nothing unless `holds`.
void Guard(Instruction* write, Instruction* holds) {
  hlo::Computation& computation = *write->parent();
  Instruction* const given = write->operand(1);  // positions, or the update
  if (write->opcode() == Opcode::kScatter) {
    ir::Literal nowhere{Shape(given->shape().dtype())};
    nowhere.SetFromDouble(0, -1);
    Instruction* const all =
        computation.Add(Opcode::kBroadcast, given->shape(),
                        {computation.AddConstant(std::move(nowhere))}, hlo::DimensionsAttrs{});
    return write->ReplaceOperand(1, SelectAll(holds, given, all));
  }
  const auto sizes = given->shape().dims();
  const auto starts = write->operands().subspan(2);
  std::vector<Instruction*> slice{write->operand(0)};
  slice.insert(slice.end(), starts.begin(), starts.end());
  Instruction* const before =
      computation.Add(Opcode::kDynamicSlice, given->shape(), slice,
                      hlo::DynamicSliceAttrs{Dims(sizes.begin(), sizes.end())});
  write->ReplaceOperand(1, SelectAll(holds, given, before));
}

// Whether no check fails.
Op AllHold(absl::Span<const RuntimeCheck> checks, Builder& builder) {
  std::optional<Op> holds;
  for (const RuntimeCheck& check : checks) {
    const Op none = builder.Constant(ir::Literal::Scalar(RuntimeCheck::kNoOffender));
    const Op one = builder.Compare(hlo::ComparisonDirection::kEq, check.offender, none);
    holds = holds ? builder.Binary(Opcode::kAnd, *holds, one) : one;
  }
  return *holds;
}

}  // namespace

std::vector<uint8_t> GuardUpdates(absl::Span<const RuntimeCheck> checks,
                                  absl::Span<const hlo::Alias> aliases,
                                  absl::Span<const Op> parameters, Builder& builder,
                                  std::vector<Op>& outputs) {
  std::vector<uint8_t> after_guard(outputs.size());
  if (checks.empty() || aliases.empty()) return after_guard;
  const Op holds = AllHold(checks, builder);
  if (!builder.status().ok()) return after_guard;
  std::vector<const Instruction*> guarded;
  for (const hlo::Alias& alias : aliases) {
    Op& output = outputs[static_cast<std::size_t>(alias.output_index[0])];
    const Op before = parameters[static_cast<std::size_t>(alias.parameter_number)];
    const auto writes = WritesTo(before.instruction(), output.instruction());
    if (!writes.empty() && !LeadsToACheck(writes.back(), checks)) {
      for (Instruction* const write : writes) Guard(write, holds.instruction());
      guarded.insert(guarded.end(), writes.begin(), writes.end());
      continue;
    }
    output = builder.Select(builder.Broadcast(holds, output.shape().dims(), {}), output, before);
  }
  if (guarded.empty()) return after_guard;
  const auto seen = ComputedFrom(std::move(guarded));
  for (std::size_t i = 0; i < outputs.size(); ++i)
    after_guard[i] = seen.contains(outputs[i].instruction()) ? 1 : 0;
  return after_guard;
}

}  // namespace lazuli::lowering
