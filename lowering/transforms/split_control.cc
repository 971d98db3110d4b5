// Loops and branches cut in two.
#include <algorithm>
#include <utility>

#include "ir/evaluator/evaluator.h"
#include "ir/support/status.h"
#include "lowering/transforms/counted_loop.h"
#include "lowering/transforms/splitter.h"

namespace lazuli::lowering {
namespace {

Mask LinearParts(absl::Span<const SplitPart> parts) {
  Mask mask;
  for (const SplitPart& part : parts) mask.push_back(part.is_linear());
  return mask;
}

std::vector<Op> KnownParts(absl::Span<const SplitPart> parts) {
  std::vector<Op> all;
  for (const SplitPart& part : parts) {
    if (!part.is_linear()) all.push_back(part.known);
  }
  return all;
}

}  // namespace

// A loop on its way: what is known of the state's parts and of the residuals of its body.
struct Splitter::CountedLoop {
  int64_t count;
  Mask linear;
  std::vector<SplitPart> begin;
  std::vector<StateStep> steps;
  SplitComputation body;

  // Position of a part among those of its side.
  std::size_t Position(std::size_t part) const {
    std::size_t position = 0;
    for (std::size_t k = 0; k < part; ++k) position += linear[k] == linear[part] ? 1 : 0;
    return position;
  }
  // A residual that is the same in all steps or a counter is not stacked.
  bool IsStacked(std::size_t residual) const {
    const std::optional<std::size_t> part = body.parameter_of[residual];
    return !part || (!steps[*part].is_invariant && !steps[*part].increment);
  }
};

std::vector<Op> Splitter::AddKnownLoop(const CountedLoop& loop) {
  std::vector<Op> state;
  for (std::size_t k = 0; k < loop.linear.size(); ++k) {
    if (!loop.linear[k]) state.push_back(loop.begin[k].known);
  }
  const std::size_t count = state.size();
  for (std::size_t r = 0; r < loop.body.residuals.size(); ++r) {
    if (loop.IsStacked(r)) state.push_back(EmptyStack(known, loop.body.residuals[r], loop.count));
  }
  const auto step = [&](Builder& b, Op number, absl::Span<const Op> at, auto) {
    const std::vector<Op> made = CopyInto(b, *loop.body.known, at.first(count));
    std::vector<Op> next(made.begin(), made.begin() + static_cast<std::ptrdiff_t>(count));
    std::size_t residual = count;
    for (std::size_t r = 0; r < loop.body.residuals.size(); ++r) {
      const std::optional<std::size_t> part = loop.body.parameter_of[r];
      const Op value = part ? at[loop.Position(*part)] : made[residual++];
      if (loop.IsStacked(r)) next.push_back(WithElement(b, at[next.size()], number, value));
    }
    return next;
  };
  return AddCountedLoop(known, loop.count, /*is_backward=*/false, state, {}, step);
}

std::vector<Op> Splitter::AddLinearLoop(const CountedLoop& loop, absl::Span<const Op> stacks) {
  std::vector<Op> state, fixed;
  for (std::size_t k = 0; k < loop.linear.size(); ++k) {
    if (loop.linear[k]) state.push_back(InLinear(loop.begin[k]));
  }
  std::size_t next_stack = 0;
  for (std::size_t r = 0; r < loop.body.residuals.size(); ++r)
    fixed.push_back(InLinear(loop.IsStacked(r) ? stacks[next_stack++]
                                               : loop.begin[*loop.body.parameter_of[r]].known));
  const auto step = [&](Builder& b, Op number, absl::Span<const Op> at, absl::Span<const Op> same) {
    std::vector<Op> operands(at.begin(), at.end());
    for (std::size_t r = 0; r < same.size(); ++r) {
      if (loop.IsStacked(r)) {
        operands.push_back(ElementOf(b, same[r], number));
        continue;
      }
      const StateStep& change = loop.steps[*loop.body.parameter_of[r]];
      operands.push_back(change.is_invariant ? same[r]
                                             : CounterAt(b, same[r], number, *change.increment));
    }
    return CopyInto(b, *loop.body.linear, operands);
  };
  return AddCountedLoop(linear, loop.count, /*is_backward=*/false, state, fixed, step);
}

absl::StatusOr<std::vector<SplitPart>> Splitter::SplitWhile(const hlo::Instruction& i,
                                                            const std::vector<SplitPart>& begin) {
  hlo::Computation &condition = *i.called()[0], &body = *i.called()[1];
  CountedLoop loop{0, DependentState(body, LinearParts(begin)), begin, StepsOfState(body), {}};
  std::vector<std::optional<Literal>> values, same(begin.size());
  for (std::size_t k = 0; k < begin.size(); ++k) {
    values.push_back(loop.linear[k] ? std::nullopt : constants.ValueOf(begin[k].known));
    if (loop.steps[k].is_invariant) same[k] = values[k];
  }
  const std::optional<int64_t> count = StepCount(*known.module(), condition, body, values);
  if (!count)
    return hlo::AtInstruction(
        Unimplemented("no reverse-mode derivative of a while loop whose number of steps is not "
                      "known before it runs; forward mode (jvp) has one"),
        i);
  if (*count == 0) return begin;
  loop.count = *count;
  LAZULI_ASSIGN_OR_RETURN(loop.body, Split(*known.module(), body, loop.linear, loop.linear, same));
  const std::vector<Op> known_end = AddKnownLoop(loop);
  std::vector<SplitPart> end(begin.size());
  std::size_t next = 0;
  for (std::size_t k = 0; k < end.size(); ++k) {
    if (!loop.linear[k]) end[k] = Known(known_end[next++]);
  }
  const std::vector<SplitPart> stacks = Known(absl::MakeConstSpan(known_end).subspan(next));
  const std::vector<Op> linear_end = AddLinearLoop(loop, KnownParts(stacks));
  next = 0;
  for (std::size_t k = 0; k < end.size(); ++k) {
    if (loop.linear[k]) end[k].linear = linear_end[next++];
  }
  return end;
}

// The branches of a conditional, cut: which parts of the result are linear in any of them, and places for
// the residuals, of which one branch's are there after a run. Those of one shape share a place.
struct Splitter::Branches {
  const std::vector<std::vector<SplitPart>>& operands;  // the index, then one for each branch
  Mask results{};
  std::vector<SplitComputation> cut{};
  std::vector<Shape> places{};
  std::vector<std::vector<std::size_t>> place_of{};  // by branch and residual that is no parameter

  std::size_t known_count() const {
    return static_cast<std::size_t>(std::count(results.begin(), results.end(), false));
  }
  void AddPlaces(const SplitComputation& branch) {
    std::vector<bool> taken(places.size(), false);
    place_of.emplace_back();
    for (std::size_t r = 0; r < branch.residuals.size(); ++r) {
      if (branch.parameter_of[r]) continue;
      std::size_t place = 0;
      while (place < places.size() && (taken[place] || !(places[place] == branch.residuals[r])))
        ++place;
      if (place == places.size()) {
        places.push_back(branch.residuals[r]);
        taken.push_back(false);
      }
      taken[place] = true;
      place_of.back().push_back(place);
    }
  }
};

// Each branch gives its known results, then what it puts into the places, zeros into others.
std::vector<Op> Splitter::AddKnownBranches(const hlo::Instruction& i, const Branches& branches) {
  const std::size_t count = branches.known_count();
  std::vector<Op> operands{branches.operands[0][0].known};
  std::vector<hlo::Computation*> made;
  for (std::size_t k = 0; k < branches.cut.size(); ++k) {
    operands.push_back(known.Tuple(KnownParts(branches.operands[k + 1])));
    const SplitComputation& cut = branches.cut[k];
    made.push_back(known.Region(
        cut.known->name(), {operands.back().shape()}, [&](Builder& b, absl::Span<const Op> p) {
          const std::vector<Op> parts = CopyInto(b, *cut.known, PartsOf(b, p[0]));
          std::vector<Op> all(parts.begin(), parts.begin() + static_cast<std::ptrdiff_t>(count));
          for (const Shape& shape : branches.places) all.push_back(b.Full(shape, 0));
          for (std::size_t r = 0; r < branches.place_of[k].size(); ++r)
            all[count + branches.place_of[k][r]] = parts[count + r];
          return b.Tuple(all);
        }));
  }
  return PartsOf(known, known.Add(Opcode::kConditional, operands, i.attrs(), made));
}

std::vector<Op> Splitter::AddLinearBranches(const hlo::Instruction& i, const Branches& branches,
                                            absl::Span<const Op> known_end) {
  std::vector<Op> operands{InLinear(branches.operands[0][0])};
  std::vector<hlo::Computation*> made;
  for (std::size_t k = 0; k < branches.cut.size(); ++k) {
    const SplitComputation& cut = branches.cut[k];
    std::vector<Op> given;
    for (const SplitPart& part : branches.operands[k + 1]) {
      if (part.is_linear()) given.push_back(part.linear);
    }
    std::size_t next = 0;
    for (const std::optional<std::size_t> parameter : cut.parameter_of)
      given.push_back(
          parameter ? InLinear(branches.operands[k + 1][*parameter])
                    : InLinear(known_end[branches.known_count() + branches.place_of[k][next++]]));
    operands.push_back(linear.Tuple(given));
    made.push_back(linear.Region(cut.linear->name(), {operands.back().shape()},
                                 [&](Builder& b, absl::Span<const Op> p) {
                                   return b.Tuple(CopyInto(b, *cut.linear, PartsOf(b, p[0])));
                                 }));
  }
  return PartsOf(linear, linear.Add(Opcode::kConditional, operands, i.attrs(), made));
}

absl::StatusOr<std::vector<SplitPart>> Splitter::SplitConditional(
    const hlo::Instruction& i, const std::vector<std::vector<SplitPart>>& operands) {
  Branches branches{operands};
  branches.results.assign(PartCount(i.shape()), false);
  for (std::size_t k = 0; k < i.called().size(); ++k) {
    branches.results = Union(std::move(branches.results),
                             DependentResults(*i.called()[k], LinearParts(operands[k + 1])));
  }
  for (std::size_t k = 0; k < i.called().size(); ++k) {
    LAZULI_ASSIGN_OR_RETURN(
        SplitComputation branch,
        Split(*known.module(), *i.called()[k], LinearParts(operands[k + 1]), branches.results));
    branches.AddPlaces(branch);
    branches.cut.push_back(std::move(branch));
  }
  const std::vector<Op> known_end = AddKnownBranches(i, branches);
  LAZULI_RETURN_IF_ERROR(known.status());
  const std::vector<SplitPart> known_parts = Known(known_end);
  const std::vector<Op> linear_end = AddLinearBranches(i, branches, known_end);
  LAZULI_RETURN_IF_ERROR(linear.status());
  std::vector<SplitPart> end;
  std::size_t next_known = 0, next_linear = 0;
  for (const bool is_linear : branches.results)
    end.push_back(is_linear ? SplitPart{{}, linear_end[next_linear++]} : known_parts[next_known++]);
  return end;
}

}  // namespace lazuli::lowering
