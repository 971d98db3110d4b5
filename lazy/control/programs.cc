#include <algorithm>
#include <memory>
#include <utility>

#include "lazy/control/programs.h"

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

// Where a while keeps what: the carried arrays; what the checks of the condition and of the step
// found; whether there is more; the number of the step; the others of both.
struct WhileLayout {
  std::size_t carried, more_checks, next_checks, more_others;
  std::size_t checks() const { return more_checks + next_checks; }
  std::size_t goes_on() const { return carried + checks(); }
  std::size_t step() const { return goes_on() + 1; }
  std::size_t others() const { return goes_on() + 2; }
};

}  // namespace

absl::StatusOr<ProgramPtr> WhileProgram(const std::string& name, const WhileParts& parts) {
  auto module = std::make_unique<hlo::Module>(name);
  Builder builder(module.get(), "main");
  LoweringContext context(builder);
  const Copy more(context, parts.more), next(context, parts.next);
  const absl::Span<const Shape> of_more = parts.more.program->parameters(),
                                of_next = parts.next.program->parameters();
  const WhileLayout at{parts.carried, more.checks().size(), next.checks().size(),
                       of_more.size() - parts.carried};
  Ops given;
  AddParameters(builder, of_next.first(at.carried), given);
  AddParameters(builder, of_more.subspan(at.carried), given);
  AddParameters(builder, of_next.subspan(at.carried), given);
  const absl::Span<const Op> all = given;
  // The condition is computed with the step before it, so that it may have checks and draw numbers.
  const Op zero = builder.Scalar(DType::kS64, 0);
  const Ops first = more(builder, Concatenated({all.first(at.carried + at.more_others)}), zero);
  Ops begin(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(at.carried));
  begin.insert(begin.end(), first.begin() + 1, first.end());
  for (std::size_t i = 0; i < at.next_checks; ++i) begin.push_back(NoOffender(builder));
  begin.push_back(first[0]);
  begin.push_back(zero);
  begin.insert(begin.end(), all.begin() + static_cast<std::ptrdiff_t>(at.carried), all.end());
  const auto goes_on = [&](Builder& b, const Ops& state) {
    Op holds = state[at.goes_on()];
    for (std::size_t i = at.carried; i < at.goes_on(); ++i)
      holds = b.Binary(Opcode::kAnd, holds, IsNoOffender(b, state[i]));
    return holds;
  };
  const auto after = [&](Builder& b, const Ops& state) {
    const absl::Span<const Op> s = state, others = s.subspan(at.others());
    const Ops made =
        next(b, Concatenated({s.first(at.carried), others.subspan(at.more_others)}), s[at.step()]);
    const Op step = b.Plus(s[at.step()], b.Scalar(DType::kS64, 1));
    const absl::Span<const Op> carried = absl::MakeConstSpan(made).first(at.carried);
    const Ops again = more(b, Concatenated({carried, others.first(at.more_others)}), step);
    Ops end(carried.begin(), carried.end());
    KeepFirst(b, s.subspan(at.carried, at.more_checks), absl::MakeConstSpan(again).subspan(1), end);
    KeepFirst(b, s.subspan(at.carried + at.more_checks, at.next_checks),
              absl::MakeConstSpan(made).subspan(at.carried), end);
    end.push_back(again[0]);
    end.push_back(step);
    end.insert(end.end(), others.begin(), others.end());
    return end;
  };
  Ops end = RepeatWhile(builder, begin, goes_on, after);
  end.resize(at.goes_on());
  return Finished(std::move(module), builder, end, Joined(more.checks(), next.checks()));
}

absl::StatusOr<ProgramPtr> StepProgram(const std::string& name, const StepParts& parts) {
  auto module = std::make_unique<hlo::Module>(name);
  Builder builder(module.get(), "main");
  LoweringContext context(builder);
  const Copy step(context, parts.step);
  const absl::Span<const Shape> taken = parts.step.program->parameters();
  const auto of_all_steps = [&](const Shape& shape) {
    Dims dims(shape.dims().begin(), shape.dims().end());
    dims.insert(dims.begin(), parts.count);
    return Shape(shape.dtype(), dims);
  };
  std::vector<Shape> arrays;
  for (const Shape& shape : taken.subspan(parts.carried, parts.over))
    arrays.push_back(of_all_steps(shape));
  Ops given;
  AddParameters(builder, taken.first(parts.carried), given);
  AddParameters(builder, arrays, given);
  AddParameters(builder, taken.subspan(parts.carried + parts.over), given);

  Ops begin(given.begin(), given.begin() + static_cast<std::ptrdiff_t>(parts.carried));
  const std::size_t made = step.results() - parts.carried;
  std::vector<Shape> kept(
      parts.step.program->results().begin() + static_cast<std::ptrdiff_t>(parts.carried),
      parts.step.program->results().end());
  if (parts.keeps_carried)
    kept.insert(kept.end(), taken.begin(),
                taken.begin() + static_cast<std::ptrdiff_t>(parts.carried));
  for (const Shape& shape : kept) begin.push_back(builder.Full(of_all_steps(shape), 0));
  for (std::size_t i = 0; i < step.checks().size(); ++i) begin.push_back(NoOffender(builder));
  const auto body = [&](const LoopStep& at) {
    const absl::Span<const Op> carried = at.carried.first(parts.carried),
                               arrays_now = at.carried.subspan(parts.carried, kept.size());
    Ops arguments(carried.begin(), carried.end());
    for (std::size_t i = 0; i < parts.over; ++i) arguments.push_back(at.Of(at.fixed[i]));
    arguments.insert(arguments.end(), at.fixed.begin() + static_cast<std::ptrdiff_t>(parts.over),
                     at.fixed.end());
    const Ops results = step(at.b, arguments, at.number);
    const absl::Span<const Op> all = results;
    std::vector<Op> end(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(parts.carried));
    for (std::size_t i = 0; i < kept.size(); ++i)
      end.push_back(at.With(arrays_now[i], i < made ? all[parts.carried + i] : carried[i - made]));
    Ops checks;
    KeepFirst(at.b, at.carried.subspan(parts.carried + kept.size()), all.subspan(step.results()),
              checks);
    end.insert(end.end(), checks.begin(), checks.end());
    return end;
  };
  const std::vector<Op> end = ForEachStep(builder, parts.count, parts.order, begin,
                                          absl::MakeConstSpan(given).subspan(parts.carried), body);
  return Finished(std::move(module), builder, end, step.checks());
}

absl::StatusOr<ProgramPtr> BranchProgram(const std::string& name, const BranchParts& parts) {
  auto module = std::make_unique<hlo::Module>(name);
  Builder builder(module.get(), "main");
  LoweringContext context(builder);
  std::vector<Part> called;
  for (const ProgramPtr& branch : parts.branches) called.push_back({branch});
  std::vector<Copy> copies;
  std::vector<ProgramCheck> checks;
  for (const Part& part : called) {
    copies.emplace_back(context, part);
    checks = Joined(checks, part.program->checks());
  }
  Ops given{builder.Parameter(0, Shape(DType::kS32))};
  AddParameters(builder, parts.parameters, given);
  Ops operands{given[0]};
  std::vector<hlo::Computation*> regions;
  std::size_t checks_before = 0;
  for (std::size_t i = 0; i < copies.size(); ++i) {
    Ops taken;
    for (const std::size_t position : parts.takes[i]) taken.push_back(given[1 + position]);
    operands.push_back(builder.Tuple(taken));
    const Shape shape = operands.back().shape();  // NOLINT: a copy, for the original moves
    regions.push_back(builder.Region(Str("branch_", i), {shape}, [&](Builder& b, auto in) {
      Ops arguments;
      for (std::size_t j = 0; j < taken.size(); ++j)
        arguments.push_back(b.GetTupleElement(in[0], static_cast<int64_t>(j)));
      const Ops made = copies[i](b, arguments, Op());
      const absl::Span<const Op> all = made;
      Ops results = Concatenated({all.first(copies[i].results())});
      for (std::size_t c = 0; c < checks.size(); ++c) {
        const bool mine = c >= checks_before && c < checks_before + copies[i].checks().size();
        results.push_back(mine ? all[copies[i].results() + c - checks_before] : NoOffender(b));
      }
      return b.Tuple(results);
    }));
    checks_before += copies[i].checks().size();
  }
  const Op chosen = builder.Add(Opcode::kConditional, operands, hlo::NoAttrs{}, regions);
  Ops results;
  for (std::size_t i = 0; i < copies.front().results() + checks.size(); ++i)
    results.push_back(builder.GetTupleElement(chosen, static_cast<int64_t>(i)));
  return Finished(std::move(module), builder, results, std::move(checks));
}

}  // namespace lazuli::lazy
