#include "lazy/control/programs.h"

#include <algorithm>
#include <memory>
#include <utility>

namespace lazuli::lazy {
namespace {

using lowering::Builder;
using lowering::LoweringContext;
using lowering::Op;
using lowering::Opcode;
using lowering::Ops;

Op NoOffender(Builder& b) {
  return b.Constant(Literal::Scalar<int64_t>(lowering::RuntimeCheck::kNoOffender));
}
Op IsNoOffender(Builder& b, Op found) {
  return b.Compare(hlo::ComparisonDirection::kEq, found, NoOffender(b));
}

// The state after `blocks` for each of `step` steps: words of 32 bits, of which a number of 64 is
// added to the last two.
Op Advanced(Builder& b, Op state, Op step, int64_t blocks) {
  const auto half = [&](int64_t i) {
    return b.Convert(b.Reshape(b.Slice(state, {i}, {i + 1}, {1}), {}), DType::kU64);
  };
  const Op bits = b.Scalar(DType::kU64, 32);
  const Op offset = b.Plus(
      b.Binary(Opcode::kOr, half(2), b.Binary(Opcode::kShiftLeft, half(3), bits)),
      b.Times(b.Convert(step, DType::kU64), b.Scalar(DType::kU64, static_cast<double>(blocks))));
  const auto word = [&](Op wide) { return b.Reshape(b.Convert(wide, DType::kU32), {1}); };
  // Conversions to u32 keep the low bits of what fits; the high ones are masked off.
  const Op low = b.Binary(Opcode::kAnd, offset, b.Scalar(DType::kU64, 4294967295.0));
  return b.Concatenate({b.Slice(state, {0}, {2}, {1}), word(low),
                        word(b.Binary(Opcode::kShiftRightLogical, offset, bits))},
                       0);
}

// A program in the module of another one.
class Copy {
 public:
  Copy(LoweringContext& context, const Part& part)
      : part_(part), computation_(context.CopyOf(part.program->module())) {}

  std::size_t results() const { return part_.program->results().size(); }
  const std::vector<ProgramCheck>& checks() const { return part_.program->checks(); }
  // The results, then what the checks find, of step number `step`; without states it may be
  // invalid.
  Ops operator()(Builder& b, Ops arguments, Op step) const {
    for (const DrawState& state : part_.states)
      arguments[state.parameter] = Advanced(b, arguments[state.parameter], step, state.blocks);
    const Op all = b.Call(computation_, arguments);
    Ops outputs;
    for (std::size_t i = 0; i < results() + checks().size(); ++i)
      outputs.push_back(b.GetTupleElement(all, static_cast<int64_t>(i)));
    return outputs;
  }

 private:
  const Part& part_;
  hlo::Computation* computation_;
};

// Parameters of these shapes, behind those that there are.
void AddParameters(Builder& b, absl::Span<const Shape> shapes, Ops& parameters) {
  for (const Shape& shape : shapes)
    parameters.push_back(
        b.Parameter(static_cast<int64_t>(parameters.size()), shape.WithDefaultLayout()));
}

Ops Concatenated(std::initializer_list<absl::Span<const Op>> parts) {
  Ops all;
  for (const absl::Span<const Op> part : parts) all.insert(all.end(), part.begin(), part.end());
  return all;
}

// What each check found first.
void KeepFirst(Builder& b, absl::Span<const Op> before, absl::Span<const Op> found, Ops& kept) {
  for (std::size_t i = 0; i < before.size(); ++i)
    kept.push_back(b.Select(IsNoOffender(b, before[i]), found[i], before[i]));
}

absl::StatusOr<ProgramPtr> Finished(std::unique_ptr<hlo::Module> module, Builder& b,
                                    absl::Span<const Op> results,
                                    std::vector<ProgramCheck> checks) {
  LAZULI_ASSIGN_OR_RETURN(hlo::Computation* const entry, b.Finish(b.Tuple(results)));
  module->set_entry(entry);
  return std::make_shared<Program>(std::move(module), std::move(checks));
}

std::vector<ProgramCheck> Joined(const std::vector<ProgramCheck>& first,
                                 const std::vector<ProgramCheck>& second) {
  std::vector<ProgramCheck> all = first;
  all.insert(all.end(), second.begin(), second.end());
  return all;
}

// A while under construction. Its state: the carried arrays; what the checks of the condition and
// of the step found; whether there is more; the number of the step; the others of the condition and
// of the step. The condition is computed at the end of the step before, so that it may have checks
// and draw numbers.
class While {
 public:
  While(LoweringContext& context, const WhileParts& parts)
      : more_(context, parts.more),
        next_(context, parts.next),
        carried_(parts.carried),
        more_others_(parts.more.program->parameters().size() - parts.carried),
        of_more_(parts.more.program->parameters()),
        of_next_(parts.next.program->parameters()) {}

  std::vector<ProgramCheck> checks() const { return Joined(more_.checks(), next_.checks()); }
  std::size_t num_results() const { return goes_on(); }

  Ops Begin(Builder& b) const {
    Ops given;
    AddParameters(b, of_next_.first(carried_), given);
    AddParameters(b, of_more_.subspan(carried_), given);
    AddParameters(b, of_next_.subspan(carried_), given);
    const absl::Span<const Op> all = given;
    const Op zero = b.Scalar(DType::kS64, 0);
    const Ops first = more_(b, Concatenated({all.first(carried_ + more_others_)}), zero);
    Ops begin = Concatenated({all.first(carried_), absl::MakeConstSpan(first).subspan(1)});
    for (std::size_t i = 0; i < next_.checks().size(); ++i) begin.push_back(NoOffender(b));
    begin.push_back(first[0]);
    begin.push_back(zero);
    return Concatenated({begin, all.subspan(carried_)});
  }
  Op GoesOn(Builder& b, const Ops& state) const {
    Op holds = state[goes_on()];
    for (std::size_t i = carried_; i < goes_on(); ++i)
      holds = b.Binary(Opcode::kAnd, holds, IsNoOffender(b, state[i]));
    return holds;
  }
  Ops Next(Builder& b, const Ops& state) const {
    const absl::Span<const Op> s = state, others = s.subspan(goes_on() + 2);
    const Op number = s[goes_on() + 1];
    const Ops made =
        next_(b, Concatenated({s.first(carried_), others.subspan(more_others_)}), number);
    const Op step = b.Plus(number, b.Scalar(DType::kS64, 1));
    const absl::Span<const Op> carried = absl::MakeConstSpan(made).first(carried_);
    const Ops again = more_(b, Concatenated({carried, others.first(more_others_)}), step);
    Ops after = Concatenated({carried});
    const std::size_t more_checks = more_.checks().size();
    KeepFirst(b, s.subspan(carried_, more_checks), absl::MakeConstSpan(again).subspan(1), after);
    KeepFirst(b, s.subspan(carried_ + more_checks, next_.checks().size()),
              absl::MakeConstSpan(made).subspan(carried_), after);
    after.push_back(again[0]);
    after.push_back(step);
    return Concatenated({after, others});
  }

 private:
  std::size_t goes_on() const { return carried_ + more_.checks().size() + next_.checks().size(); }

  Copy more_, next_;
  std::size_t carried_, more_others_;
  absl::Span<const Shape> of_more_, of_next_;
};

// A loop over steps under construction. It carries: the carried arrays; the arrays of all steps
// that it makes, of further results and perhaps of what the steps were given; what the checks
// found.
class LoopSteps {
 public:
  LoopSteps(LoweringContext& context, const StepParts& parts)
      : parts_(parts),
        step_(context, parts.step),
        taken_(parts.step.program->parameters()),
        further_(step_.results() - parts.carried) {
    const std::vector<Shape>& results = parts.step.program->results();
    for (std::size_t i = parts.carried; i < results.size(); ++i) Add(results[i]);
    for (const std::size_t i : parts.kept) Add(taken_[i]);
  }

  const std::vector<ProgramCheck>& checks() const { return step_.checks(); }
  Ops Parameters(Builder& b) const {
    std::vector<Shape> over;
    for (std::size_t i = 0; i < parts_.over; ++i)
      if (!IsAbsent(i)) over.push_back(OfAllSteps(taken_[parts_.carried + i]));
    Ops given;
    AddParameters(b, taken_.first(parts_.carried), given);
    AddParameters(b, over, given);
    AddParameters(b, taken_.subspan(parts_.carried + parts_.over), given);
    return given;
  }
  Ops Begin(Builder& b, absl::Span<const Op> given) const {
    Ops begin = Concatenated({given.first(parts_.carried)});
    for (const Shape& shape : made_) begin.push_back(b.Full(shape, 0));
    for (std::size_t i = 0; i < checks().size(); ++i) begin.push_back(NoOffender(b));
    return begin;
  }
  std::vector<Op> Body(const LoopStep& at) const {
    const absl::Span<const Op> carried = at.carried.first(parts_.carried);
    Ops arguments = Concatenated({carried});
    std::size_t next = 0;
    for (std::size_t i = 0; i < parts_.over; ++i)
      arguments.push_back(IsAbsent(i) ? at.b.Full(taken_[parts_.carried + i], 0)
                                      : at.Of(at.fixed[next++]));
    const Ops results = step_(at.b, Concatenated({arguments, at.fixed.subspan(next)}), at.number);
    const absl::Span<const Op> all = results;
    Ops after = Concatenated({all.first(parts_.carried)});
    for (std::size_t i = 0; i < made_.size(); ++i) {
      const Op element =
          i < further_ ? all[parts_.carried + i] : carried[parts_.kept[i - further_]];
      after.push_back(at.With(at.carried[parts_.carried + i], element));
    }
    KeepFirst(at.b, at.carried.subspan(parts_.carried + made_.size()), all.subspan(step_.results()),
              after);
    return {after.begin(), after.end()};
  }

 private:
  Shape OfAllSteps(const Shape& shape) const {
    Dims dims(shape.dims().begin(), shape.dims().end());
    dims.insert(dims.begin(), parts_.count);
    return Shape(shape.dtype(), dims);
  }
  bool IsAbsent(std::size_t i) const {
    return std::find(parts_.absent.begin(), parts_.absent.end(), i) != parts_.absent.end();
  }
  void Add(const Shape& element) { made_.push_back(OfAllSteps(element)); }

  const StepParts& parts_;
  Copy step_;
  absl::Span<const Shape> taken_;
  std::size_t further_;
  std::vector<Shape> made_;
};

// A branch as a computation of a tuple: its results, then what the checks of all branches found, of
// which those from `first_check` on are its own.
hlo::Computation* BranchRegion(Builder& builder, const Copy& branch, const Shape& taken,
                               std::size_t first_check, std::size_t num_checks) {
  return builder.Region("branch", {taken}, [&](Builder& b, auto in) {
    Ops arguments;
    for (std::size_t i = 0; i < taken.tuple().size(); ++i)
      arguments.push_back(b.GetTupleElement(in[0], static_cast<int64_t>(i)));
    const Ops made = branch(b, arguments, Op());
    Ops results = Concatenated({absl::MakeConstSpan(made).first(branch.results())});
    for (std::size_t c = 0; c < num_checks; ++c) {
      const bool is_own = c >= first_check && c < first_check + branch.checks().size();
      results.push_back(is_own ? made[branch.results() + c - first_check] : NoOffender(b));
    }
    return b.Tuple(results);
  });
}

}  // namespace

absl::StatusOr<ProgramPtr> WhileProgram(const std::string& name, const WhileParts& parts) {
  auto module = std::make_unique<hlo::Module>(name);
  Builder builder(module.get(), "main");
  LoweringContext context(builder);
  const While loop(context, parts);
  Ops end = RepeatWhile(
      builder, loop.Begin(builder),
      [&](Builder& b, const Ops& state) { return loop.GoesOn(b, state); },
      [&](Builder& b, const Ops& state) { return loop.Next(b, state); });
  end.resize(loop.num_results());
  return Finished(std::move(module), builder, end, loop.checks());
}

absl::StatusOr<ProgramPtr> StepProgram(const std::string& name, const StepParts& parts) {
  auto module = std::make_unique<hlo::Module>(name);
  Builder builder(module.get(), "main");
  LoweringContext context(builder);
  const LoopSteps steps(context, parts);
  const Ops given = steps.Parameters(builder);
  const Ops begin = steps.Begin(builder, given);
  if (parts.count == 0)  // an array without elements has none to take
    return Finished(std::move(module), builder, begin, steps.checks());
  const std::vector<Op> end = ForEachStep(builder, parts.count, parts.order, begin,
                                          absl::MakeConstSpan(given).subspan(parts.carried),
                                          [&](const LoopStep& at) { return steps.Body(at); });
  return Finished(std::move(module), builder, end, steps.checks());
}

absl::StatusOr<ProgramPtr> BranchProgram(const std::string& name, const BranchParts& parts) {
  auto module = std::make_unique<hlo::Module>(name);
  Builder builder(module.get(), "main");
  LoweringContext context(builder);
  std::vector<Part> called;
  std::vector<ProgramCheck> checks;
  for (const ProgramPtr& branch : parts.branches) {
    called.push_back({branch});
    checks = Joined(checks, branch->checks());
  }
  Ops given{builder.Parameter(0, Shape(DType::kS32))};
  AddParameters(builder, parts.parameters, given);
  Ops operands{given[0]};
  std::vector<hlo::Computation*> regions;
  std::size_t first_check = 0;
  for (std::size_t i = 0; i < called.size(); ++i) {
    Ops taken;
    for (const std::size_t position : parts.takes[i]) taken.push_back(given[1 + position]);
    operands.push_back(builder.Tuple(taken));
    const Shape shape = operands.back().shape();  // NOLINT: a copy, for the original moves
    const Copy branch(context, called[i]);
    regions.push_back(BranchRegion(builder, branch, shape, first_check, checks.size()));
    first_check += branch.checks().size();
  }
  const Op chosen = builder.Add(Opcode::kConditional, operands, hlo::NoAttrs{}, regions);
  Ops results;
  const std::size_t outputs = parts.branches.front()->results().size() + checks.size();
  for (std::size_t i = 0; i < outputs; ++i)
    results.push_back(builder.GetTupleElement(chosen, static_cast<int64_t>(i)));
  return Finished(std::move(module), builder, results, std::move(checks));
}

}  // namespace lazuli::lazy
