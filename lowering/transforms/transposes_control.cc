// Transpose rules of loops, which run backwards, and of branches.
#include <algorithm>
#include <utility>

#include "ir/evaluator/evaluator.h"
#include "ir/support/status.h"
#include "lowering/transforms/counted_loop.h"
#include "lowering/transforms/transpose.h"

namespace lazuli::lowering {
namespace {

Mask LinearMask(absl::Span<const LinearPart> parts) {
  Mask mask;
  for (const LinearPart& part : parts) mask.push_back(part.is_linear());
  return mask;
}

}  // namespace

absl::Status TransposeWhile(TransposeStep& s) {
  hlo::Computation &condition = *s.i.called()[0], &body = *s.i.called()[1];
  const std::vector<LinearPart>& begin = s.operands[0];
  const Mask linear = DependentState(body, LinearMask(begin));
  const std::vector<StateStep> steps = StepsOfState(body);
  std::vector<std::optional<Literal>> values;
  std::vector<Op> state, fixed;
  for (std::size_t k = 0; k < begin.size(); ++k) {
    values.push_back(linear[k] ? std::nullopt : s.constants.ValueOf(begin[k].known));
    if (linear[k])
      state.push_back(s.cotangents.OrZeros(s.results[k].slot));
    else if (steps[k].is_invariant || steps[k].increment)
      fixed.push_back(begin[k].known);
    else
      return s.NotLinear();
  }
  const std::optional<int64_t> count = StepCount(*s.b.module(), condition, body, values);
  if (!count) return s.NotLinear();
  LAZULI_ASSIGN_OR_RETURN(hlo::Computation* const back,
                          Transpose(*s.b.module(), body, linear, linear));
  const auto step = [&](Builder& b, Op number, absl::Span<const Op> at, absl::Span<const Op> same) {
    std::vector<Op> operands;
    for (std::size_t k = 0; k < linear.size(); ++k) {
      if (linear[k]) continue;
      const Op value = same[operands.size()];
      operands.push_back(steps[k].is_invariant ? value
                                               : CounterAt(b, value, number, *steps[k].increment));
    }
    operands.insert(operands.end(), at.begin(), at.end());
    return CopyInto(b, *back, operands);
  };
  const std::vector<Op> end =
      *count == 0 ? state : AddCountedLoop(s.b, *count, /*is_backward=*/true, state, fixed, step);
  std::size_t next = 0;
  for (std::size_t k = 0; k < begin.size(); ++k) {
    if (!linear[k]) continue;
    if (begin[k].is_linear()) s.cotangents.Add(begin[k].slot, end[next]);
    ++next;
  }
  return absl::OkStatus();
}

namespace {

// The slots of all linear parts, each once: the result of transposed branches has a cotangent for each.
std::vector<std::size_t> SlotsOf(absl::Span<const std::vector<LinearPart>> operands) {
  std::vector<std::size_t> slots;
  for (const std::vector<LinearPart>& parts : operands) {
    for (const LinearPart& part : parts) {
      if (part.is_linear() && std::find(slots.begin(), slots.end(), part.slot) == slots.end())
        slots.push_back(part.slot);
    }
  }
  return slots;
}

// The cotangents of `slots` that a transposed branch has for the linear ones of these parts.
Op AddBranchCotangents(Builder& b, const TransposeStep& s, absl::Span<const std::size_t> slots,
                       absl::Span<const LinearPart> parts, absl::Span<const Op> made) {
  Cotangents sums(b);
  for (const std::size_t slot : slots) sums.NewSlot(s.cotangents.shape(slot));
  std::size_t next = 0;
  for (const LinearPart& part : parts) {
    if (!part.is_linear()) continue;
    const auto at = std::find(slots.begin(), slots.end(), part.slot) - slots.begin();
    sums.Add(static_cast<std::size_t>(at), made[next++]);
  }
  std::vector<Op> all;
  for (std::size_t slot = 0; slot < slots.size(); ++slot) all.push_back(sums.OrZeros(slot));
  return b.Tuple(all);
}

}  // namespace

absl::Status TransposeConditional(TransposeStep& s) {
  const std::vector<std::size_t> slots = SlotsOf(absl::MakeConstSpan(s.operands).subspan(1));
  std::vector<Op> cotangents;
  Mask wanted;
  for (const LinearPart& result : s.results) {
    wanted.push_back(s.cotangents.of(result.slot).valid());
    if (wanted.back()) cotangents.push_back(s.cotangents.of(result.slot));
  }
  std::vector<Op> operands{s.x(0)};
  std::vector<hlo::Computation*> branches;
  for (std::size_t k = 0; k < s.i.called().size(); ++k) {
    const std::vector<LinearPart>& parts = s.operands[k + 1];
    LAZULI_ASSIGN_OR_RETURN(hlo::Computation* const back,
                            Transpose(*s.b.module(), *s.i.called()[k], LinearMask(parts), wanted));
    std::vector<Op> given;
    for (const LinearPart& part : parts) {
      if (!part.is_linear()) given.push_back(part.known);
    }
    given.insert(given.end(), cotangents.begin(), cotangents.end());
    operands.push_back(s.b.Tuple(given));
    branches.push_back(s.b.Region(
        back->name(), {operands.back().shape()}, [&](Builder& b, absl::Span<const Op> p) {
          return AddBranchCotangents(b, s, slots, parts, CopyInto(b, *back, PartsOf(b, p[0])));
        }));
  }
  LAZULI_RETURN_IF_ERROR(s.b.status());
  const std::vector<Op> end =
      PartsOf(s.b, s.b.Add(Opcode::kConditional, operands, s.i.attrs(), branches));
  LAZULI_RETURN_IF_ERROR(s.b.status());
  for (std::size_t k = 0; k < slots.size(); ++k) s.cotangents.Add(slots[k], end[k]);
  return absl::OkStatus();
}

}  // namespace lazuli::lowering
