#include "lowering/transforms/dependence.h"

#include <algorithm>
#include <utility>

#include "ir/evaluator/evaluator.h"

namespace lazuli::lowering {
namespace {

bool Any(absl::Span<const Mask> masks) {
  return std::any_of(masks.begin(), masks.end(), [](const Mask& mask) {
    return std::find(mask.begin(), mask.end(), true) != mask.end();
  });
}

Mask DependentParts(const hlo::Instruction& i, const std::vector<Mask>& operands) {
  if (i.opcode() == Opcode::kWhile) return DependentState(*i.called()[1], operands[0]);
  Mask all(PartCount(i.shape()), Any(operands));
  if (i.opcode() != Opcode::kConditional) return all;
  all.assign(all.size(), operands[0][0]);
  for (std::size_t k = 0; k < i.called().size(); ++k)
    all = Union(std::move(all), DependentResults(*i.called()[k], operands[k + 1]));
  return all;
}

// A part of an instruction's result, which is no tuple made of others.
struct Source {
  const hlo::Instruction* i;
  std::size_t part;
};

PartMap<Source> SourcesIn(const hlo::Computation& computation) {
  PartMap<Source> map;
  for (const hlo::Instruction* i : computation.PostOrder()) {
    if (map.Route(*i)) continue;
    for (std::size_t k = 0; k < PartCount(i->shape()); ++k) map[i].push_back({i, k});
  }
  return map;
}

std::optional<int64_t> IntegerOf(const hlo::Instruction& i) {
  if (!i.IsConstant() || !i.shape().IsScalar() || !ir::IsIntegral(i.shape().dtype())) return {};
  return static_cast<int64_t>(i.literal().AsDouble(0));
}

// Copies of instructions that decide the number of steps.
class Deciding {
 public:
  explicit Deciding(const hlo::Computation& computation) : sources_(SourcesIn(computation)) {}
  Source RootPart(const hlo::Computation& computation, std::size_t k) const {
    return sources_.at(computation.root())[k];
  }
  // Adds the parts of the one parameter that the source depends on.
  void Collect(Source source, Mask& parts) {
    if (source.i->opcode() == Opcode::kParameter) {
      parts[source.part] = true;
      return;
    }
    if (!visited_.emplace(source.i, Op()).second) return;
    for (const hlo::Instruction* operand : source.i->operands()) {
      for (const Source of : sources_.at(operand)) Collect(of, parts);
    }
  }
  // The source of given parts of the parameter.
  Op Copy(Builder& b, Source source, absl::Span<const Op> parameter) {
    if (source.i->opcode() == Opcode::kParameter) return parameter[source.part];
    std::vector<Op>& made = copies_[source.i];
    if (made.empty()) {
      std::vector<std::vector<Op>> operands;
      for (const hlo::Instruction* operand : source.i->operands()) {
        operands.emplace_back();
        for (const Source of : sources_.at(operand))
          operands.back().push_back(Copy(b, of, parameter));
      }
      made = AddLikeOfParts(b, *source.i, operands);
    }
    return made[source.part];
  }

 private:
  PartMap<Source> sources_;
  std::unordered_map<const hlo::Instruction*, Op> visited_;
  std::unordered_map<const hlo::Instruction*, std::vector<Op>> copies_;
};

// The parts of a loop's state that its condition depends on, now and by way of its body.
Mask DecidingParts(const hlo::Computation& condition, const hlo::Computation& body) {
  const Shape& state = condition.parameters()[0]->shape();
  Mask parts(PartCount(state), false);
  Deciding in_condition(condition), in_body(body);
  in_condition.Collect(in_condition.RootPart(condition, 0), parts);
  for (;;) {
    const Mask before = parts;
    for (std::size_t k = 0; k < before.size(); ++k) {
      if (before[k]) in_body.Collect(in_body.RootPart(body, k), parts);
    }
    if (parts == before) return parts;
  }
}

// A computation of those parts alone: of the roots of `computation` that `roots` names.
hlo::Computation* Reduced(hlo::Module& module, const hlo::Computation& computation,
                          const Mask& parts, absl::Span<const std::size_t> roots) {
  Builder b(&module, "deciding");
  const std::vector<Shape> shapes = PartsOf(computation.parameters()[0]->shape());
  std::vector<Op> parameter(parts.size()), results;
  int64_t number = 0;
  for (std::size_t k = 0; k < parts.size(); ++k) {
    if (parts[k]) parameter[k] = b.Parameter(number++, shapes[k]);
  }
  Deciding copy(computation);
  for (const std::size_t k : roots)
    results.push_back(copy.Copy(b, copy.RootPart(computation, k), parameter));
  return b.Finish(b.Tuple(results)).value_or(nullptr);
}

}  // namespace

Mask DependentResults(const hlo::Computation& computation, const Mask& parameters) {
  PartMap<bool> map;
  map.AddParameters(computation, parameters);
  for (const hlo::Instruction* i : computation.PostOrder()) {
    if (i->opcode() == Opcode::kParameter || map.Route(*i)) continue;
    map[i] = DependentParts(*i, map.OfOperands(*i));
  }
  return map.at(computation.root());
}

Mask DependentState(const hlo::Computation& body, const Mask& begin) {
  Mask state = begin;
  for (;;) {
    Mask next = Union(state, DependentResults(body, state));
    if (next == state) return state;
    state = std::move(next);
  }
}

std::vector<StateStep> StepsOfState(const hlo::Computation& body) {
  const PartMap<Source> sources = SourcesIn(body);
  std::vector<StateStep> steps;
  const auto is_begin = [&](Source source) {
    return source.i->opcode() == Opcode::kParameter && source.part == steps.size();
  };
  for (const Source end : sources.at(body.root())) {
    StateStep step{.is_invariant = is_begin(end)};
    if (end.i->opcode() == Opcode::kAdd) {
      const Source x = sources.at(end.i->operand(0))[0], y = sources.at(end.i->operand(1))[0];
      if (is_begin(x)) step.increment = IntegerOf(*y.i);
      if (is_begin(y)) step.increment = IntegerOf(*x.i);
    }
    steps.push_back(step);
  }
  return steps;
}

std::optional<Literal> Constants::ValueOf(const hlo::Instruction* i, int depth) const {
  constexpr int kDeepest = 32;
  constexpr int64_t kLargest = 64;
  if (i == nullptr || depth > kDeepest) return {};
  if (const auto known = known_.find(i); known != known_.end()) return known->second;
  if (i->IsConstant()) return i->literal();
  if (!i->shape().IsArray() || i->shape().num_elements() > kLargest || i->operands().empty() ||
      !i->called().empty() || i->HasSideEffect())
    return {};
  std::vector<Literal> values;
  for (const hlo::Instruction* operand : i->operands()) {
    std::optional<Literal> value = ValueOf(operand, depth + 1);
    if (!value) return {};
    values.push_back(*std::move(value));
  }
  std::vector<const Literal*> pointers;
  for (const Literal& value : values) pointers.push_back(&value);
  auto result = hlo::EvaluateInstruction(*i, pointers);
  return result.ok() ? std::optional(*std::move(result)) : std::nullopt;
}

std::optional<int64_t> StepCount(hlo::Module& module, const hlo::Computation& condition,
                                 const hlo::Computation& body,
                                 absl::Span<const std::optional<Literal>> begin) {
  constexpr int64_t kMost = 1'000'000;
  const Mask parts = DecidingParts(condition, body);
  std::vector<std::size_t> deciding;
  std::vector<Literal> state;
  for (std::size_t k = 0; k < parts.size(); ++k) {
    if (!parts[k]) continue;
    if (!begin[k]) return {};
    deciding.push_back(k);
    state.push_back(*begin[k]);
  }
  const hlo::Computation* const more = Reduced(module, condition, parts, {0});
  const hlo::Computation* const next = Reduced(module, body, parts, deciding);
  if (more == nullptr || next == nullptr) return {};
  for (int64_t count = 0; count <= kMost; ++count) {
    std::vector<const Literal*> pointers;
    for (const Literal& part : state) pointers.push_back(&part);
    const auto goes_on = hlo::Evaluate(*more, pointers);
    if (!goes_on.ok()) return {};
    if (goes_on->tuple()[0].AsDouble(0) == 0) return count;
    auto after = hlo::Evaluate(*next, pointers);
    if (!after.ok()) return {};
    state = std::move(after->mutable_tuple());
  }
  return {};
}

}  // namespace lazuli::lowering
